import type { JSX, ReactNode } from "react";

export function Kbd({ children }: { children: ReactNode }): JSX.Element {
  return (
    <kbd className="mono inline-flex h-[18px] min-w-[18px] items-center justify-center rounded border border-g4 bg-g1 px-1 text-xs text-g7">
      {children}
    </kbd>
  );
}

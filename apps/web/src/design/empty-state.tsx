import type { JSX, ReactNode } from "react";

/** Says why there is nothing and teaches the next step. */
export function EmptyState({ title, children }: { title: string; children?: ReactNode }): JSX.Element {
  return (
    <div className="mx-auto flex w-full max-w-[560px] flex-col gap-3 px-4 py-12">
      <h2 className="text-lg font-semibold">{title}</h2>
      <div className="flex flex-col gap-3 text-g8">{children}</div>
    </div>
  );
}

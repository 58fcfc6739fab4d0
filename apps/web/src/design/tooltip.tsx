"use client";
import { Tooltip as Radix } from "radix-ui";
import type { JSX, ReactNode } from "react";

/** Words on hover and on focus; the trigger must be focusable or hold its own label. */
export function Tooltip({ content, children }: { content: ReactNode; children: ReactNode }): JSX.Element {
  return (
    <Radix.Root delayDuration={250}>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          sideOffset={4}
          collisionPadding={8}
          className="z-50 max-w-[320px] rounded-md border border-g4 bg-g0 px-2.5 py-1.5 text-sm text-g8 shadow-float"
        >
          {content}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
export const TooltipProvider = Radix.Provider;

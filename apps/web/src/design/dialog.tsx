"use client";
import { Dialog as Radix } from "radix-ui";
import type { JSX, ReactNode } from "react";
import { IconButton } from "./button.tsx";
import { Icon } from "./icon.tsx";
import { join } from "./join.ts";

/**
 * The first field, else the first button below the title, which is the one that does nothing: the cross, first in the order of keys,
 * is where nobody wants to begin.
 */
function focusWithin(event: Event): void {
  const content = event.currentTarget;
  if (!(content instanceof HTMLElement)) return;
  const wanted =
    content.querySelector<HTMLElement>("input:not(:disabled), select:not(:disabled), textarea:not(:disabled)") ??
    [...content.querySelectorAll<HTMLElement>("button:not(:disabled)")].find((button) => !button.dataset.close);
  if (!wanted) return;
  event.preventDefault();
  wanted.focus();
}

/** A modal with a title that screen readers hear; Escape and the cross close it. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  width = 440,
  bare = false,
}: {
  open: boolean;
  onOpenChange(open: boolean): void;
  title: string;
  description?: ReactNode;
  children: ReactNode;
  width?: number;
  /** No visible header or padding (the palette draws its own). */
  bare?: boolean;
}): JSX.Element {
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-overlay" />
        <Radix.Content
          onOpenAutoFocus={focusWithin}
          aria-describedby={description ? undefined : ""}
          style={{ width, maxWidth: "calc(100vw - 32px)" }}
          className={join(
            "fixed top-[14vh] left-1/2 z-50 max-h-[76vh] -translate-x-1/2 overflow-auto rounded-md border border-g4 bg-g0 shadow-float outline-none",
            !bare && "p-4",
          )}
        >
          <div className={bare ? "sr-only" : "mb-3 flex items-start justify-between gap-4"}>
            <Radix.Title className="text-lg font-semibold">{title}</Radix.Title>
            {!bare && (
              <Radix.Close asChild>
                <IconButton label="Close" data-close>
                  <Icon name="close" />
                </IconButton>
              </Radix.Close>
            )}
          </div>
          {description && (
            <Radix.Description asChild>
              <div className="mb-4 text-g8">{description}</div>
            </Radix.Description>
          )}
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

"use client";
import type { JSX, ReactNode } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { ErrorBanner } from "./error-banner.tsx";

/** Says what a command does before it is given, and stays open where it was refused. */
export function DoingDialog({
  title,
  action,
  danger = false,
  pending,
  error,
  doing,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  action: string;
  /** It can't be undone. */
  danger?: boolean;
  pending: boolean;
  error: unknown;
  /** "hold the step" */
  doing: string;
  onConfirm(): void;
  onClose(): void;
  children: ReactNode;
}): JSX.Element {
  return (
    <Dialog open onOpenChange={(open) => !open && onClose()} title={title} description={children}>
      {error ? <ErrorBanner error={error} doing={doing} /> : null}
      <div className="mt-2 flex justify-end gap-2">
        <Button onClick={onClose}>Cancel</Button>
        <Button look={danger ? "danger" : "primary"} disabled={pending} onClick={onConfirm}>
          {action}
        </Button>
      </div>
    </Dialog>
  );
}

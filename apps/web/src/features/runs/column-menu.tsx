"use client";
import type { VisibilityState } from "@tanstack/react-table";
import { DropdownMenu } from "radix-ui";
import type { JSX } from "react";
import { buttonClass } from "../../design/button.tsx";
import { runColumns } from "./run-columns.tsx";

const names = runColumns.map((each) => ({
  id: "accessorKey" in each && typeof each.accessorKey === "string" ? each.accessorKey : (each.id ?? ""),
  title: String(each.header),
}));

export function ColumnMenu({
  hidden,
  onHidden,
  open,
  onOpenChange,
}: {
  hidden: VisibilityState;
  onHidden(hidden: VisibilityState): void;
  open: boolean;
  onOpenChange(open: boolean): void;
}): JSX.Element {
  return (
    <DropdownMenu.Root open={open} onOpenChange={onOpenChange}>
      <DropdownMenu.Trigger className={buttonClass("quiet")}>Columns</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          sideOffset={4}
          className="z-50 min-w-[180px] rounded-md border border-g4 bg-g0 p-1 shadow-float"
        >
          {names
            .filter(({ id }) => id !== "status" && id !== "name")
            .map(({ id, title }) => (
              <DropdownMenu.CheckboxItem
                key={id}
                checked={hidden[id] !== false}
                onSelect={(event) => event.preventDefault()}
                onCheckedChange={(shown) => onHidden({ ...hidden, [id]: shown })}
                className="flex h-7 cursor-pointer items-center gap-2 rounded px-2 outline-none data-[highlighted]:bg-g2"
              >
                <span className="w-3 text-accent-text">{hidden[id] !== false ? "✓" : ""}</span>
                {title}
              </DropdownMenu.CheckboxItem>
            ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

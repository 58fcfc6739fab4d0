/** Table cells on the 32 px rhythm; numbers to the right in tabular figures. */
import type { JSX, ReactNode, TdHTMLAttributes, ThHTMLAttributes } from "react";
import { join } from "./join.ts";

export function Th({
  className,
  right,
  ...rest
}: ThHTMLAttributes<HTMLTableCellElement> & { right?: boolean }): JSX.Element {
  return (
    <th
      scope="col"
      className={join(
        "h-8 border-b border-g3 px-2 text-sm font-medium whitespace-nowrap text-g7",
        right && "text-right",
        className,
      )}
      {...rest}
    />
  );
}

/** Heading of the column of a row's buttons: the buttons say what they do. */
export function ActionsTh(): JSX.Element {
  return (
    <Th>
      <span className="sr-only">Actions</span>
    </Th>
  );
}

export function Td({
  className,
  right,
  ...rest
}: TdHTMLAttributes<HTMLTableCellElement> & { right?: boolean }): JSX.Element {
  return (
    <td
      className={join("h-8 border-b border-g2 px-2", right && "num text-right text-sm whitespace-nowrap", className)}
      {...rest}
    />
  );
}

export function Table({ label, children }: { label: string; children: ReactNode }): JSX.Element {
  return (
    <div className="overflow-x-auto">
      <table aria-label={label} className="w-full">
        {children}
      </table>
    </div>
  );
}

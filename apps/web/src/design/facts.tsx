import { Fragment, type JSX, type ReactNode } from "react";

/** Names and values in two columns. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ReactNode])[] }): JSX.Element {
  return (
    <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
      {rows.map(([name, value]) => (
        <Fragment key={name}>
          <dt className="text-sm leading-5 whitespace-nowrap text-g7">{name}</dt>
          <dd className="min-w-0 text-sm leading-5 [overflow-wrap:anywhere]">{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

import type { JSX, Ref } from "react";

/** What keeps a comparison from being launched; each variant's leads to it. Takes the focus when a launch is refused. */
export function FaultList({
  ref,
  faults,
  refusals,
  onShow,
}: {
  ref: Ref<HTMLDivElement>;
  faults: readonly string[];
  /** `at`: place of the variant, from 0. */
  refusals: readonly { readonly label: string; readonly at: number; readonly count: number }[];
  onShow(at: number): void;
}): JSX.Element {
  const some = faults.length + refusals.length > 0;
  return (
    <div
      ref={ref}
      tabIndex={-1}
      role={some ? "alert" : undefined}
      data-testid="issue-summary"
      className={some ? "rounded-md bg-failed-soft px-3 py-2" : "sr-only"}
    >
      <ul>
        {faults.map((fault) => (
          <li key={fault} className="text-failed">
            ▲ {fault}
          </li>
        ))}
        {refusals.map(({ label, at, count }) => (
          <li key={at} className="flex gap-2">
            <span className="text-failed">▲</span>
            <span className="min-w-0 [overflow-wrap:anywhere]">
              {count === 1 ? "One setting" : `${count} settings`} of{" "}
              <button type="button" onClick={() => onShow(at)} className="text-accent-text hover:underline">
                {label || `variant ${at + 1}`}
              </button>{" "}
              {count === 1 ? "is" : "are"} refused: said beside the field
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

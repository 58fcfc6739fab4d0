"use client";
/** Who waits now, for what, and what would let them on. */
import type { WaitingNow as Waiting } from "@rolldeck/contracts/api/schedule";
import type { JSX } from "react";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatCount } from "../../format/numbers.ts";

const stageWords = { init: "to be set up", run: "to run", evaluate: "to be graded" } as const;

export function WaitingNow({ waiting }: { waiting: Waiting }): JSX.Element {
  return (
    <section aria-label="Waiting now" className="flex flex-col gap-1">
      <h2 className="font-semibold">Waiting now</h2>
      {waiting.waits.length === 0 ? (
        <p className="text-g7">No rollout waits.</p>
      ) : (
        <ul>
          {waiting.waits.map((wait) => (
            <li
              key={`${wait.stage} ${wait.cause}`}
              data-cause={wait.cause}
              className="flex min-h-6 items-baseline gap-x-3"
            >
              <span className="num w-14 shrink-0 text-right font-medium">{formatCount(wait.count)}</span>
              <span className="w-32 shrink-0 whitespace-nowrap">
                wait{wait.count === 1 ? "s" : ""} {stageWords[wait.stage]}
              </span>
              <span className="flex min-w-0 flex-1 flex-wrap gap-x-3">
                <span className="text-g8">{wait.detail}</span>
                {wait.fix && <span className="text-g9">→ {wait.fix}</span>}
                <span className="text-sm text-g7">
                  oldest <TimeAgo at={wait.oldestAt} />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { visibleText } from "../../design/visible-text.ts";
import { formatCount } from "../../format/numbers.ts";

/** A whole step whose rollouts could have no sandbox: the reason once, for all of them. */
export function RefusalBanner({ run }: { run: Pick<RunDetail, "sandboxRefusal"> }): JSX.Element | null {
  const { sandboxRefusal } = run;
  if (sandboxRefusal === null) return null;
  const { step, purpose, rollouts, reason, alike } = sandboxRefusal;
  return (
    <div role="alert" className="mx-4 mt-3 shrink-0 rounded-md bg-failed-soft px-3 py-2 [overflow-wrap:anywhere]">
      <p className="font-medium text-failed">
        No sandbox could be opened for any of the <span className="num">{formatCount(rollouts)}</span> rollouts of{" "}
        {purpose === "train" ? "step" : "the evaluation of version"} {step}
      </p>
      <p className="text-sm">
        {visibleText(reason)}
        {alike < rollouts && (
          <span className="text-g7"> (so {formatCount(alike)} of them; the others for other reasons)</span>
        )}
      </p>
    </div>
  );
}

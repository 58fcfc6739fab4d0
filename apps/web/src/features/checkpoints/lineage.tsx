import type { RelatedRun, RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import Link from "next/link";
import type { JSX } from "react";
import { StatusMark } from "../../design/status-mark.tsx";
import { formatCount } from "../../format/numbers.ts";

/** Where the run comes from, and what came from it. Nothing where there is neither. */
export function Lineage({
  found: { parent, children },
  run,
}: {
  found: RunCheckpoints;
  run: RunDetail;
}): JSX.Element | null {
  if (parent === null && children.length === 0) return null;
  return (
    <section aria-label="Lineage" className="mb-4 flex flex-col gap-1 text-sm text-g8">
      {parent && (
        <p>
          {parent.relation === "fork" ? "Began with" : "Came after"} {versionWords(parent)} of <RunLink run={parent} />
          {parent.relation === "superseded" && ": it holds what that run did before it was set back."}
        </p>
      )}
      {children.map((child) => (
        <p key={child.runId}>
          {child.relation === "fork"
            ? `From ${versionWords(child)}: `
            : `Set back to ${versionWords(child)}; what ${run.name} had done after it is `}
          <RunLink run={child} />
        </p>
      ))}
    </section>
  );
}

const versionWords = ({ version }: RelatedRun): string =>
  version === null ? "the newest version" : `version ${formatCount(version)}`;

function RunLink({ run: { runId, name, status } }: { run: RelatedRun }): JSX.Element {
  return (
    <span className="inline-flex max-w-full min-w-0 items-center gap-1.5 align-bottom">
      <StatusMark status={status} />
      <Link
        href={`/runs/${runId}?tab=checkpoints`}
        title={name}
        className="max-w-[420px] truncate text-accent-text hover:underline"
      >
        {name}
      </Link>
    </span>
  );
}

import type { CheckpointInfo, RunCheckpoints } from "@rolldeck/contracts/api/checkpoints";
import { metrics } from "@rolldeck/contracts/metrics";
import Link from "next/link";
import type { JSX } from "react";
import { Button, buttonClass } from "../../design/button.tsx";
import { Chip } from "../../design/chip.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatBytes, formatCount, formatInUnit, shortenId } from "../../format/numbers.ts";
import { measuredWords, reasonWords } from "./keep-words.ts";

const small = "h-6! px-2! text-sm!";

export function CheckpointTable({
  found,
  chosen,
  busy,
  onChoose,
  onPin,
  onRestore,
  onServe,
}: {
  found: RunCheckpoints;
  chosen: number | null;
  busy: boolean;
  onChoose(version: number): void;
  onPin(checkpoint: CheckpointInfo): void;
  onRestore(checkpoint: CheckpointInfo): void;
  onServe(checkpoint: CheckpointInfo): void;
}): JSX.Element {
  const { keepBest } = found.rule;
  return (
    <Table label="Checkpoints">
      <thead>
        <tr>
          <Th right title="Policy version, which is the number of the step that made it">
            Version
          </Th>
          <Th right>Saved</Th>
          <Th right>Size</Th>
          {keepBest && (
            <Th right title={`${metrics[keepBest.metric].definition} ${measuredWords(keepBest.metric)}`}>
              {metrics[keepBest.metric].title}
            </Th>
          )}
          <Th>Kept as</Th>
          <Th>Runs from it</Th>
          <ActionsTh />
        </tr>
      </thead>
      <tbody>
        {found.checkpoints.map((checkpoint) => (
          <tr
            key={checkpoint.version}
            aria-selected={checkpoint.version === chosen}
            className={checkpoint.version === chosen ? "bg-accent-soft" : "hover:bg-g1"}
            onClick={() => onChoose(checkpoint.version)}
          >
            <Td right title={checkpoint.name}>
              {formatCount(checkpoint.version)}
            </Td>
            <Td right>
              <TimeAgo at={checkpoint.createdAt} />
            </Td>
            <Td right>{formatBytes(checkpoint.bytes)}</Td>
            {keepBest && <Td right>{formatInUnit(checkpoint.measure, metrics[keepBest.metric].unit)}</Td>}
            <Td>
              <KeptAs checkpoint={checkpoint} />
            </Td>
            <Td>
              <Children runs={checkpoint.children} />
            </Td>
            <Td>
              <RowActions
                found={found}
                checkpoint={checkpoint}
                busy={busy}
                onPin={onPin}
                onRestore={onRestore}
                onServe={onServe}
              />
            </Td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function KeptAs({ checkpoint: { keptAs } }: { checkpoint: CheckpointInfo }): JSX.Element {
  if (keptAs.length === 0)
    return (
      <Chip tone="paused" title="The run no longer keeps it: it goes with the next one that is saved">
        goes next
      </Chip>
    );
  return (
    <span className="inline-flex flex-wrap gap-1">
      {keptAs.map((reason) => (
        <Chip key={reason} tone={reason === "pinned" ? "accent" : "neutral"} title={reasonWords[reason].title}>
          {reasonWords[reason].label}
        </Chip>
      ))}
    </span>
  );
}

const shownRuns = 3;

function Children({ runs }: { runs: CheckpointInfo["children"] }): JSX.Element {
  if (runs.length === 0) return <span className="text-sm text-g7">none</span>;
  return (
    <span className="inline-flex flex-wrap gap-x-2 text-sm">
      {runs.slice(0, shownRuns).map(({ runId, name, relation }) => (
        <Link
          key={runId}
          href={`/runs/${runId}`}
          title={`${name}: ${relation === "fork" ? "began with it" : "what came after it, before the run was set back"}`}
          className="num whitespace-nowrap text-accent-text hover:underline"
        >
          {shortenId(runId)}
        </Link>
      ))}
      {runs.length > shownRuns && <span className="text-g7">and {formatCount(runs.length - shownRuns)} more</span>}
    </span>
  );
}

function RowActions({
  found: { runId, restoreRefusal, exportRefusal, exportFormats },
  checkpoint,
  busy,
  onPin,
  onRestore,
  onServe,
}: {
  found: RunCheckpoints;
  checkpoint: CheckpointInfo;
  busy: boolean;
  onPin(checkpoint: CheckpointInfo): void;
  onRestore(checkpoint: CheckpointInfo): void;
  onServe(checkpoint: CheckpointInfo): void;
}): JSX.Element {
  const { id, version, pinned } = checkpoint;
  return (
    <span className="flex justify-end gap-1">
      <Link
        href={`/runs/new?from=${runId}&version=${version}`}
        title="Start a new run with these weights"
        className={buttonClass("quiet", small)}
      >
        Fork
      </Link>
      <Button
        look="quiet"
        small
        disabled={restoreRefusal !== null}
        title={restoreRefusal ?? "Set this run back to it"}
        onClick={() => onRestore(checkpoint)}
      >
        Restore
      </Button>
      {exportRefusal === null ? (
        <a
          href={`/api/v1/checkpoints/${id}/export`}
          download
          title={
            exportFormats.includes("peft")
              ? "Download it as a Hugging Face folder in a tar, the adapter merged into its base"
              : "Download it as a Hugging Face folder in a tar"
          }
          className={buttonClass("quiet", small)}
        >
          Export
        </a>
      ) : (
        <Button look="quiet" small disabled title={exportRefusal}>
          Export
        </Button>
      )}
      {exportRefusal === null && exportFormats.includes("peft") && (
        <a
          href={`/api/v1/checkpoints/${id}/export?format=peft`}
          download
          title="Download the adapter alone, as PEFT reads it, in a tar"
          className={buttonClass("quiet", small)}
        >
          Adapter
        </a>
      )}
      <Button
        look="quiet"
        small
        disabled={exportRefusal !== null}
        title={exportRefusal ?? "Answer with it as an OpenAI-compatible server"}
        onClick={() => onServe(checkpoint)}
      >
        Serve
      </Button>
      <Button
        look="quiet"
        small
        disabled={busy}
        className="min-w-[54px]"
        aria-pressed={pinned}
        onClick={() => onPin(checkpoint)}
      >
        {pinned ? "Unpin" : "Pin"}
      </Button>
    </span>
  );
}

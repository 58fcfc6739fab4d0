import { artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { parseAsString, parseAsStringLiteral, useQueryStates } from "nuqs";
import type { JSX } from "react";
import { Chip } from "../../design/chip.tsx";
import { TextPreview } from "../../design/text-preview.tsx";
import { formatBytes, formatCount } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { panes } from "./evidence/panes.ts";
import type { SubAgent } from "./thread-tree.ts";

type Call = TurnView["calls"][number];

/** One call with its arguments, what came back, where all of that lies, and the agent it made. */
export function CallBlock({
  call,
  turn,
  agent,
  artifactHref,
  onGo,
}: {
  call: Call;
  turn: number;
  /** The sub-agent that the call made. */
  agent: SubAgent | undefined;
  artifactHref(name: string): string;
  onGo(turn: number): void;
}): JSX.Element {
  const failed = call.error !== null;
  return (
    <div className="ml-[108px] overflow-hidden rounded-md border border-g3 max-md:ml-0" data-call={call.index}>
      <div className="flex min-h-7 flex-wrap items-center gap-2 border-b border-g3 bg-g1 px-2">
        <span className="mono min-w-0 truncate text-sm font-medium" title={call.name}>
          {call.name}
        </span>
        {failed && <Chip tone="failed">▲ {call.error?.code}</Chip>}
        {call.state === "started" && <Chip tone="running">running</Chip>}
        {agent && (
          <button
            type="button"
            className="text-xs text-accent-text hover:underline"
            onClick={(event) => {
              event.stopPropagation();
              onGo(agent.firstTurn);
            }}
          >
            sub-agent: {formatCount(agent.turns)} {agent.turns === 1 ? "turn" : "turns"}, from turn {agent.firstTurn}
          </button>
        )}
        <span className="flex-1" />
        <span className="num text-xs text-g7">{formatDuration(call.durationMs)}</span>
      </div>
      <div className="grid grid-cols-[64px_minmax(0,1fr)] gap-y-1 p-2">
        <span className="text-xs leading-[18px] text-g7">Arguments</span>
        <TextPreview text={JSON.stringify(call.arguments, null, Object.keys(call.arguments).length > 1 ? 2 : 0)} />
        <span className="text-xs leading-[18px] text-g7">{failed ? "Error" : "Result"}</span>
        <Result call={call} />
        {(call.wholeBytes !== null || call.artifacts.some(isOfCall)) && (
          <>
            <span className="text-xs leading-[18px] text-g7">In full</span>
            <Whole call={call} turn={turn} artifactHref={artifactHref} />
          </>
        )}
      </div>
    </div>
  );
}

function Result({ call }: { call: Call }): JSX.Element {
  if (call.error) return <TextPreview text={call.error.message} className="text-failed" />;
  if (!call.output) return <span className="text-sm text-g7">not there yet</span>;
  const { text, cutCharacters } = call.output;
  return <TextPreview text={text === "" ? "(empty)" : text} cutCharacters={cutCharacters} />;
}

/** What belongs to the whole rollout may lie at a call's place. */
const wellKnown: readonly string[] = Object.values(artifactNames);
const isOfCall = ({ name }: Call["artifacts"][number]): boolean => !wellKnown.includes(name);

/** The model saw a part; this is how much there was, and where it is kept. */
function Whole({
  call,
  turn,
  artifactHref,
}: {
  call: Call;
  turn: number;
  artifactHref(name: string): string;
}): JSX.Element {
  const [, setView] = useQueryStates({ pane: parseAsStringLiteral(panes), output: parseAsString }, { history: "push" });
  const onShow = () => void setView({ pane: "output", output: `${turn}.${call.index}` });
  return (
    <span className="flex flex-wrap gap-x-3 text-xs leading-[18px] text-g7">
      {call.wholeBytes !== null && <span>the model saw a cut version of {formatBytes(call.wholeBytes)}</span>}
      {call.artifacts.some(isOfCall) && (
        <button
          type="button"
          className="text-accent-text hover:underline"
          onClick={(event) => {
            event.stopPropagation();
            onShow();
          }}
        >
          show it in full
        </button>
      )}
      {call.artifacts.filter(isOfCall).map((artifact) => (
        <a
          key={artifact.name}
          href={artifactHref(artifact.name)}
          download
          title={artifact.mediaType}
          className="text-accent-text hover:underline"
          onClick={(event) => event.stopPropagation()}
        >
          {artifact.name === "output.txt" ? "full output" : artifact.name} ({formatBytes(artifact.bytes)}
          {artifact.storedBytes < artifact.bytes && `, ${formatBytes(artifact.storedBytes)} of it kept`})
        </a>
      ))}
    </span>
  );
}

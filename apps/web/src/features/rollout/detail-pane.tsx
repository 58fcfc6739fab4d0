"use client";
import type { RolloutDetail, TurnView } from "@rolldeck/contracts/api/rollouts";
import type { JSX, ReactNode } from "react";
import { CopyText } from "../../design/copy-text.tsx";
import { Facts } from "../../design/facts.tsx";
import { TextPreview } from "../../design/text-preview.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";
import { formatCount, formatExact, formatFraction, formatNumber, shortenId } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";
import { subAgents } from "./thread-tree.ts";
import type { Token } from "./token-store.ts";
import { TokenFacts } from "./token-tooltip.tsx";

const number = (value: ReactNode) => <span className="num">{value}</span>;

/** The chosen token, the chosen turn, then the whole rollout. */
export function DetailPane({
  rollout,
  turns,
  turn,
  token,
  link,
}: {
  rollout: RolloutDetail;
  turns: readonly TurnView[];
  turn: TurnView | null;
  token: Token | null;
  /** Address of what is chosen. */
  link: string;
}): JSX.Element {
  return (
    <div className="flex flex-col gap-5 p-4">
      {token && (
        <section aria-label="Token">
          <h2 className="mb-1.5 font-semibold">Token {formatExact(token.index)}</h2>
          <TokenFacts token={token} />
        </section>
      )}
      {turn && (
        <section aria-label="Turn">
          <h2 className="mb-1.5 font-semibold">Turn {turn.turn}</h2>
          <Facts
            rows={[
              ["Policy version", number(turn.policyVersion)],
              ["Prompt", number(`${formatExact(turn.promptTokens)} tokens`)],
              [
                "From cache",
                number(turn.promptTokens > 0 ? formatFraction(turn.cacheHitTokens / turn.promptTokens) : "n/a"),
              ],
              ["Sampled", number(`${formatExact(turn.sampledTokens)} tokens`)],
              ["Place", number(`${turn.sampledRange.start}–${turn.sampledRange.end - 1}`)],
              ["Mean log-prob", number(formatNumber(turn.meanLogprob, "nats"))],
              ["Stopped by", turn.stopReason === "stop" ? "stop token" : "length"],
              ["Sampling", number(formatDuration(turn.sampleMs))],
              ["Committed", <TimeAgo key="at" at={turn.at} />],
              [
                "Link",
                <CopyText key="link" text={link}>
                  copy
                </CopyText>,
              ],
            ]}
          />
        </section>
      )}
      <section aria-label="Rollout">
        <h2 className="mb-1.5 font-semibold">Rollout</h2>
        <Facts
          rows={[
            [
              "Id",
              <CopyText key="id" text={rollout.rolloutId}>
                {shortenId(rollout.rolloutId)}
              </CopyText>,
            ],
            ["Task", rollout.taskSet],
            ["Purpose", `${rollout.purpose === "train" ? "train, step" : "held-out, version"} ${rollout.step}`],
            ["Success", rollout.success === null ? "n/a" : rollout.success ? "yes" : "no"],
            ["Training rows", <RowCount key="rows" rollout={rollout} turns={turns} />],
            ["Context changes", number(formatCount(turns.filter((each) => each.contextChange !== null).length))],
            ["Sub-agents", number(formatCount(subAgents(turns).size))],
            ["Turns retried", number(formatCount(turns.filter((each) => each.parseError !== null).length))],
            ["Sampled", number(formatExact(rollout.tokens.sampled))],
            ["Observations", number(formatExact(rollout.tokens.observation))],
            ["Template", number(formatExact(rollout.tokens.template))],
            ["Hints", number(formatExact(rollout.tokens.hint))],
            ["All tokens", number(formatExact(rollout.tokens.total))],
            ["Created", <TimeAgo key="created" at={rollout.createdAt} />],
          ]}
        />
      </section>
      {rollout.finalAnswer !== null && (
        <section aria-label="Final answer">
          <h2 className="mb-1.5 font-semibold">Final answer</h2>
          <TextPreview text={rollout.finalAnswer} />
        </section>
      )}
      <section aria-label="Stages">
        <h2 className="mb-1.5 font-semibold">Stages</h2>
        <Spans rollout={rollout} />
      </section>
    </div>
  );
}

/**
 * A row for each unbroken prefix: restarts that a turn follows and sub-agents open rows; more than those mean broken prefixes.
 * Said only once every turn of the attempt is here.
 */
function RowCount({ rollout, turns }: { rollout: RolloutDetail; turns: readonly TurnView[] }): JSX.Element {
  const { rows } = rollout.fate;
  const whole = rollout.ending !== null && turns.length === turnsOf(rollout);
  const opens = (turn: TurnView) =>
    turn.contextChange !== null && turns.some((later) => later.thread === turn.thread && later.turn > turn.turn);
  const expected = 1 + subAgents(turns).size + turns.filter(opens).length;
  const broken = whole ? Math.max(0, rows - expected) : 0;
  return (
    <span className="num">
      {formatCount(rows)}
      {broken > 0 && (
        <span
          className="text-paused"
          title="The prompt was not a continuation of what came before; a new row begins there"
        >
          {" "}
          · {formatCount(broken)} {broken === 1 ? "break" : "breaks"}
        </span>
      )}
    </span>
  );
}

const turnsOf = ({ attempts, attempt }: RolloutDetail): number | undefined =>
  attempts.find((each) => each.attempt === attempt)?.turns;

/** Each stage of the attempt shown: how long it waited and how long it worked. */
function Spans({ rollout }: { rollout: RolloutDetail }): JSX.Element {
  const spans = rollout.spans.filter((span) => span.attempt === rollout.attempt);
  const ms = (from: string | null, to: string | null) => (from && to ? Date.parse(to) - Date.parse(from) : null);
  const most = spans.reduce((max, span) => Math.max(max, ms(span.queuedAt, span.endedAt) ?? 0), 1);
  if (spans.length === 0) return <p className="text-sm text-g7">None yet.</p>;
  return (
    <ul className="flex flex-col gap-2">
      {spans.map((span) => {
        const waited = ms(span.queuedAt, span.startedAt);
        const worked = ms(span.startedAt, span.endedAt);
        return (
          <li key={span.stage} className="text-sm">
            <span className="flex justify-between">
              <span>{span.stage}</span>
              <span className="num text-g7" title="Waited, then worked">
                {formatDuration(waited)} + {formatDuration(worked)}
              </span>
            </span>
            <span aria-hidden="true" className="mt-0.5 flex h-1.5">
              <span className="hatched bg-g3" style={{ width: `${((waited ?? 0) / most) * 100}%` }} />
              <span
                style={{
                  width: `${((worked ?? 0) / most) * 100}%`,
                  background: `var(--stage-${span.stage})`,
                  minWidth: 2,
                }}
              />
            </span>
          </li>
        );
      })}
    </ul>
  );
}

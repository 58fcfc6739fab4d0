/** What the run's log says of one entry, within what an event can hold. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { EventBody } from "@rolldeck/contracts/events";
import { cutText } from "./clean-text.ts";
import type { EdgeEntry, HotEntry, TurnEntry } from "./entries.ts";

/** @throws BoundaryError of the verifier for a reward that is no number */
export function eventOfEntry(entry: HotEntry): EventBody {
  const { rolloutId, attempt } = entry;
  switch (entry.kind) {
    case "turn":
      return {
        type: "turn-sampled",
        rolloutId,
        attempt,
        turn: entry.turn.turn,
        promptTokens: entry.turn.promptTokens,
        sampledTokens: entry.turn.sampledTokens,
        policyVersion: entry.turn.policyVersion,
        sampleMs: entry.turn.sampleMs,
        calls: callNames(entry.turn.calls),
        stopReason: entry.turn.stopReason,
      };
    case "tools": {
      const errors = entry.results.filter((result) => result.error !== null).length;
      return { type: "tools-ended", rolloutId, attempt, turn: entry.turn, durationMs: entry.durationMs, errors };
    }
    case "edge":
      return edgeEvent(entry);
  }
}

/** Names of the first calls, within what an event can hold. */
function callNames(calls: TurnEntry["turn"]["calls"]): string[] {
  const names = calls.slice(0, 16).map((call) => cutText(call.name, 64));
  let left = 1_200;
  return names.filter((name) => {
    left -= Buffer.byteLength(name);
    return left >= 0;
  });
}

function edgeEvent({ rolloutId, attempt, claim, stage, to }: EdgeEntry): EventBody {
  const ref = { type: "rollout-status", rolloutId, attempt, claim, stage } as const;
  const open = { outcome: null, reward: null, success: null, ending: to.ending ?? null };
  const reason = to.reason ? cutText(to.reason, 500) : null;
  switch (to.move) {
    case "next-stage":
      return { ...ref, ...open, stage: to.stage, state: "waiting", reason };
    case "release":
      return { ...ref, ...open, state: to.failure === "none" ? "queued" : "waiting", reason };
    case "settle": {
      if (to.reward !== null && !Number.isFinite(to.reward)) {
        throw new BoundaryError("verifier", "bad-reward", `a reward must be a finite number, not ${to.reward}`);
      }
      const { outcome, ending, reward, success } = to;
      return { ...ref, state: "settled", outcome, ending, reward, success, reason };
    }
  }
}

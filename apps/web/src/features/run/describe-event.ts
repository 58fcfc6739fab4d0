/** One event as a line a person reads: a sentence and how serious it is. Pure. */
import { endingRule } from "@rolldeck/contracts/endings";
import type { EventBody } from "@rolldeck/contracts/events";
import { formatBytes, formatCount, formatNumber } from "../../format/numbers.ts";
import { formatDuration } from "../../format/times.ts";

export interface EventLine {
  readonly text: string;
  readonly level: "info" | "warning" | "error";
  readonly rolloutId?: string;
}
const info = (text: string, rolloutId?: string): EventLine => ({
  text,
  level: "info",
  ...(rolloutId ? { rolloutId } : {}),
});
const reasoned = (text: string, reason: string | null): string => (reason ? `${text}: ${reason}` : text);
/** Ids sort by time, so neighbours differ only at their end. */
const lastOf = (id: string): string => `…${id.slice(-6)}`;
const plural = (count: number, noun: string): string => `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;

function rolloutStatus(body: Extract<EventBody, { type: "rollout-status" }>): EventLine {
  const who = `rollout ${lastOf(body.rolloutId)}${body.attempt > 1 ? ` attempt ${body.attempt}` : ""}`;
  if (body.state !== "settled")
    return {
      ...info(reasoned(`${who} ${body.state} in ${body.stage}`, body.reason), body.rolloutId),
      level: body.reason ? "warning" : "info",
    };
  const ending = body.ending ? endingRule(body.ending).label : "settled";
  const reward = body.reward === null ? "" : `, reward ${formatNumber(body.reward)}`;
  return {
    text: reasoned(`${who} ${ending}${reward}`, body.outcome === "completed" ? null : body.reason),
    level: body.outcome === "failed" ? "error" : "info",
    rolloutId: body.rolloutId,
  };
}

export function describeEvent(body: EventBody): EventLine {
  switch (body.type) {
    case "run-created":
      return info(`run “${body.name}” created`);
    case "run-status":
      return {
        text: reasoned(`run ${body.from} → ${body.to}`, body.reason),
        level: body.to === "failed" ? "error" : "info",
      };
    case "boot-progress":
      return info(
        `${body.phase}: ${body.message}${body.done === null ? "" : ` (${formatCount(body.done)}${body.total === null ? "" : ` of ${formatCount(body.total)}`}${body.unit ? ` ${body.unit}` : ""})`}`,
      );
    case "step-created":
      return info(
        `${body.purpose === "train" ? "step" : "evaluation of version"} ${body.step} created: ${plural(body.groups, "group")}, ${plural(body.rollouts, "rollout")}`,
      );
    case "step-status":
      return {
        text: reasoned(`${body.purpose} step ${body.step} ${body.from} → ${body.to}`, body.reason),
        level: body.to === "failed" ? "error" : "info",
      };
    case "rollout-status":
      return rolloutStatus(body);
    case "rollouts-moved":
      return info(`${plural(body.rolloutIds.length, "rollout")} ${body.state} in ${body.stage}`);
    case "groups-added":
      return info(
        `step ${body.step}: ${plural(body.groups, "group")} and ${plural(body.rollouts, "rollout")} more${body.replacing === 0 ? "" : `, ${body.replacing} in place of groups set aside`}`,
      );
    case "groups-moved":
      return info(`${plural(body.groupIds.length, "group")} moved to step ${body.step}`);
    case "group-set-aside":
      return {
        text: reasoned(
          `group ${lastOf(body.groupId)} set aside as ${body.as.replace("-", " ")}${body.cancelled === 0 ? "" : `, ${plural(body.cancelled, "rollout")} cancelled`}`,
          body.reason,
        ),
        level: "info",
      };
    case "run-limit-changed":
      return info(
        reasoned(`rollouts that run at once: ${body.from ?? "the bound"} → ${body.to ?? "the bound"}`, body.reason),
      );
    case "dispatcher-changed":
      return info(`${body.by} changed the dispatcher: ${JSON.stringify(body.change)}`);
    case "drain-changed":
      return info(
        reasoned(
          body.draining ? `${body.by} drains the run: nothing new is started` : `${body.by} no longer drains the run`,
          body.reason,
        ),
      );
    case "hold-changed":
      return info(`${body.by} ${body.held ? "holds" : "lets go of"} ${body.part} ${lastOf(body.id)}`);
    case "turn-sampled":
      return info(
        `rollout ${lastOf(body.rolloutId)} turn ${body.turn}: ${plural(body.sampledTokens, "token")} in ${formatDuration(body.sampleMs)}${body.calls.length > 0 ? `, calls ${body.calls.join(", ")}` : ""}${body.stopReason === "length" ? ", cut by length" : ""}`,
        body.rolloutId,
      );
    case "tools-ended":
      return {
        text: `rollout ${lastOf(body.rolloutId)} turn ${body.turn}: tools ended in ${formatDuration(body.durationMs)}${body.errors > 0 ? `, ${plural(body.errors, "error")}` : ""}`,
        level: body.errors > 0 ? "warning" : "info",
        rolloutId: body.rolloutId,
      };
    case "sandbox-opened":
      return info(
        body.place === undefined
          ? `rollout ${lastOf(body.rolloutId)} ${body.purpose} sandbox opened in ${body.runtime} in ${formatDuration(body.openMs)}`
          : `rollout ${lastOf(body.rolloutId)} is number ${body.place} in environment ${lastOf(body.sandboxId)}, reset in ${formatDuration(body.openMs)}`,
        body.rolloutId,
      );
    case "sandbox-closed":
      return {
        text: reasoned(`rollout ${lastOf(body.rolloutId)} ${body.purpose} sandbox ${body.state}`, body.reason),
        level: body.state === "lost" ? "warning" : "info",
        rolloutId: body.rolloutId,
      };
    case "sandbox-shell":
      return info(
        `${body.by} ${body.action} a shell in a sandbox of rollout ${lastOf(body.rolloutId)}`,
        body.rolloutId,
      );
    case "version-serving":
      return info(`version ${body.version} serves`);
    case "checkpoint-saved":
      return info(
        `checkpoint ${body.name} of version ${body.version} saved${body.bytes === null ? "" : `, ${formatBytes(body.bytes)}`}`,
      );
    case "checkpoint-removed":
      return info(
        `checkpoint ${body.name} of version ${body.version} removed${body.bytes === null ? "" : `, ${formatBytes(body.bytes)} freed`}`,
      );
    case "checkpoint-lost":
      return {
        text: reasoned(`checkpoint ${body.name} of version ${body.version} can't be loaded any more`, body.reason),
        level: "warning",
      };
    case "checkpoint-pinned":
      return info(`${body.by} ${body.pinned ? "pins" : "no longer pins"} the checkpoint of version ${body.version}`);
    case "checkpoint-served":
      return info(
        `${body.by} ${body.served ? "serves" : "no longer serves"} the checkpoint of version ${body.version}`,
      );
    case "run-restored":
      return info(
        `${body.by} set the run back to version ${body.version}${body.supersededRunId === null ? "" : `; its steps ${body.version + 1} to ${body.lastStep} are run ${lastOf(body.supersededRunId)} now`}`,
      );
    case "model-adopted":
      if (body.fresh) return info(`model created${body.checkpoint ? ` from ${body.checkpoint}` : ""}`);
      return {
        text: `model adopted after a restart${body.checkpoint ? ` from ${body.checkpoint}` : ""}, ${plural(body.replayed, "step")} replayed`,
        level: "warning",
      };
    case "metrics-written":
      return info(`metrics of step ${body.step} written (${body.names})`);
    case "batch-requested":
      return info(`outside trainer asks for a batch for step ${body.step}: ${plural(body.groups, "group")}`);
    case "trainer-job":
      return {
        text: reasoned(`launched trainer ${body.trainer}, attempt ${body.attempt}: ${body.state}`, body.message),
        level: body.state === "failed" || body.state === "lost" ? "warning" : "info",
      };
    case "note":
      return { text: body.message, level: body.level };
  }
}

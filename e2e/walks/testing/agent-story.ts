/**
 * One rollout in which everything happens that an agent's page must tell: thinking, a hint, a retry, a cut turn, mended calls, a
 * sub-agent, an output too long to show, a restarted context, another call format. Its training rows mask what they should.
 */
import { type MaskReason, maskReasons } from "@rolldeck/contracts/endings";
import { type PlacedSegment, type ScriptedTurn, seedAgentTrajectory } from "@rolldeck/db/testing/seed-agent-trajectory";
import { seedEvents, seedRun, seedStep, seedTrainingRow } from "@rolldeck/db/testing/seed-run";
import type pg from "pg";

const call = (name: string, args: string): string => `<tool_call>{"name": "${name}", "arguments": ${args}}</tool_call>`;

export const fullOutput = `${"a line of a long listing\n".repeat(400)}the end of it\n`;
export const storyHint = "Hint: 5 turns are left. Finish with what you have.";

const turns: readonly ScriptedTurn[] = [
  {
    added: [
      { origin: "template", text: "<|im_start|>user\n" },
      { origin: "observation", text: "Which of the 4,000 files names the key? Answer with the file." },
      { origin: "template", text: "<|im_end|>\n<|im_start|>assistant\n" },
    ],
    says: `<think>A listing first; it may be long.</think>I list the files.\n${call("bash", '{"command": "ls -R /data"}')}`,
    calls: [
      {
        name: "bash",
        arguments: { command: "ls -R /data" },
        output: "a line of a long listing\n… 9,990 bytes cut …\nthe end of it",
        wholeBytes: Buffer.byteLength(fullOutput),
        artifact: fullOutput,
      },
    ],
  },
  {
    added: [
      { origin: "observation", text: "a line of a long listing … the end of it" },
      { origin: "hint", text: storyHint },
    ],
    says: "It is probably somewhere in the middle.",
    parseError: 'There was no tool call in your turn. Write one, for example:\n<tool_call>{"name": "bash"}</tool_call>',
  },
  {
    added: [{ origin: "observation", text: "There was no tool call in your turn." }],
    says: "Let me think about every one of the four thousand files in turn, beginning with",
    stopReason: "length",
    parseError: "Your turn was cut after 80 tokens. Write less before the call.",
    notes: [{ kind: "truncated", message: "cut after 80 tokens, before its end token" }],
  },
  {
    added: [{ origin: "observation", text: "Your turn was cut." }],
    says: `I ask someone for half of them.\n${call("delegate", '{"task": "search the first half", "turns": "3",}')}`,
    notes: [
      { kind: "repair", message: "delegate: a comma before } was dropped" },
      { kind: "coercion", message: "delegate: turns was read as the number 3" },
    ],
    calls: [
      { name: "delegate", arguments: { task: "search the first half", turns: 3 }, output: "it is in /data/b/17.txt" },
    ],
  },
  {
    thread: "3.0",
    added: [{ origin: "template", text: "<|im_start|>user\nsearch the first half<|im_end|>\n<|im_start|>assistant\n" }],
    says: call("bash", '{"command": "grep -rl key /data/b"}'),
    calls: [
      {
        name: "bash",
        arguments: { command: "grep -rl key /data/b" },
        error: { code: "timeout", message: "no result within 60 s" },
      },
    ],
  },
  {
    thread: "3.0",
    added: [{ origin: "observation", text: "no result within 60 s" }],
    says: call("finish", '{"answer": "it is in /data/b/17.txt"}'),
    calls: [{ name: "finish", arguments: { answer: "it is in /data/b/17.txt" }, output: "" }],
  },
  {
    added: [{ origin: "observation", text: "it is in /data/b/17.txt" }],
    says: call("next_with_summary", '{"summary": "17.txt in b"}'),
    calls: [{ name: "next_with_summary", arguments: { summary: "17.txt in b" }, output: "" }],
    context: { keep: [0, 1, 2], added: [{ origin: "observation", text: "What you know: 17.txt in b" }] },
  },
  {
    added: [],
    says: '[finish(answer="/data/b/17.txt")]',
    parseError: "Calls are read in the format hermes. Write it like this:\n<tool_call>…</tool_call>",
    notes: [
      { kind: "dialect", message: "the text looks like calls of another format; this run reads hermes" },
      { kind: "usage", message: "the server counted 33 sampled tokens, its ids are 34" },
    ],
  },
  {
    added: [{ origin: "observation", text: "Calls are read in the format hermes." }],
    says: call("finish", '{"answer": "/data/b/17.txt"}'),
    calls: [{ name: "finish", arguments: { answer: "/data/b/17.txt" }, output: "" }],
  },
];

export interface AgentStory {
  readonly runId: string;
  readonly rolloutId: string;
  /** Of the cut turn's first token. */
  readonly cutToken: number;
}

export async function seedAgentStory(pool: pg.Pool): Promise<AgentStory> {
  const runId = await seedRun(pool, {
    status: "completed",
    endedAt: "2026-11-30T00:00:00Z",
    config: { name: "agent story", agent: { dialect: "hermes", onLength: "tell" } },
  });
  await seedEvents(pool, runId, 1);
  const { stepId, rolloutIds } = await seedStep(pool, runId, {
    step: 1,
    rollouts: [
      { reward: 1, ending: "finish_tool" },
      { reward: 0, ending: "turn_limit" },
    ],
  });
  const rolloutId = rolloutIds[0] ?? "";
  const placed = await seedAgentTrajectory(pool, rolloutId, turns);
  // A sibling that says the same first, and then something else.
  const [same] = turns;
  if (same) await seedAgentTrajectory(pool, rolloutIds[1] ?? "", [same, { added: [], says: "I give up." }]);
  const sampled = placed.filter(({ origin }) => origin === "sampled");
  const reasons = new Map<number | undefined, MaskReason>([
    [sampled[1]?.index, "parse-retry"],
    [sampled[2]?.index, "turn-cut"],
    [sampled[7]?.index, "incomplete-sample"],
  ]);
  const [, , , , sub, subEnd, restart, after] = sampled;
  const between = (from: number, to: number) => placed.filter(({ index }) => index >= from && index <= to);
  const subStart = (sub?.index ?? 0) - 1;
  const rows = [
    [...between(0, subStart - 1), ...between((subEnd?.index ?? 0) + 1, restart?.index ?? 0)],
    between(subStart, subEnd?.index ?? 0),
    [...between(0, 2), ...between((after?.index ?? 0) - 1, placed.length - 1)],
  ];
  for (const [row, segments] of rows.entries())
    await seedTrainingRow(pool, { runId, stepId, rolloutId, row, advantage: 0.5, ...rowOf(segments, reasons) });
  return { runId, rolloutId, cutToken: sampled[2]?.start ?? 0 };
}

function rowOf(segments: readonly PlacedSegment[], reasons: ReadonlyMap<number | undefined, MaskReason>) {
  const mask = segments.map(({ index, origin, start, end }) => ({
    count: end - start,
    reason: origin === "sampled" ? (reasons.get(index) ?? null) : origin,
  }));
  const unknown = mask.find(({ reason }) => reason !== null && !maskReasons.includes(reason));
  if (unknown) throw new Error(`no mask reason ${unknown.reason}`);
  const trainerLogprobs = mask.flatMap(({ count }) => Array.from({ length: count }, () => -0.4)).slice(1);
  return { ranges: segments.flatMap(({ start, end }) => [start, end]), mask, trainerLogprobs };
}

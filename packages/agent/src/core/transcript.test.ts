import type { SampleRequest } from "@rolldeck/contracts/ports/sampler";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, saying, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { runRollout } from "./run-rollout.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});
const signal = new AbortController().signal;
const finish = '[finish(answer="7")]';

describe("servers that take no tokens", () => {
  it("are told the conversation; wires that don't ask keep none of it", async () => {
    const seen: string[] = [];
    const ask = (said: string) => (request: SampleRequest) => {
      seen.push(JSON.stringify(request.prompt.messages()));
      return saying(tokenizer, said);
    };
    const policy = [ask('[get(key="a")]'), ask("hm"), ask(finish)];
    const ports = scriptedRollout({ tokenizer, policy, keepPrompts: true });
    await runRollout(rolloutSpec(tokenizer, { hints: ["steps-left"] }), null, ports, signal);
    expect(JSON.parse(seen[2] ?? "[]")).toEqual([
      { role: "user", content: "find a" },
      { role: "assistant", content: "", toolCalls: [{ id: "c00000000", name: "get", arguments: { key: "a" } }] },
      { role: "tool", content: "next after a", toolCallId: "c00000000", name: "get" },
      { role: "user", content: "hint: 49 turns are left; plan so that you can call finish with your answer in time" },
      { role: "assistant", content: "hm" },
      { role: "user", content: expect.stringContaining("error: no tool call found") },
      { role: "user", content: expect.stringContaining("hint: 48 turns") },
    ]);
    for (const message of seen) expect(message).not.toMatch(/None|null|undefined/);
  });

  it("are told it too by a worker that goes on, unless the context was changed", async () => {
    const whole = scriptedRollout({ tokenizer, policy: ['[get(key="a")]', "hm", finish] });
    const spec = rolloutSpec(tokenizer, { hints: ["steps-left"] });
    await runRollout(spec, null, whole, signal);
    const { segments, turns } = whole.stored();
    const stored = { segments: segments.slice(0, turns[2]?.sampledSegment), turns: turns.slice(0, 2) };
    let seen: readonly unknown[] = [];
    const ask = (request: SampleRequest) => {
      seen = structuredClone(request.prompt.messages());
      return saying(tokenizer, finish);
    };
    const again = scriptedRollout({ tokenizer, policy: [ask], stored, keepPrompts: true });
    await runRollout(spec, stored, again, signal);
    expect(seen.slice(0, 4)).toEqual([
      { role: "user", content: "find a" },
      { role: "assistant", content: "", toolCalls: [{ id: "c00000000", name: "get", arguments: { key: "a" } }] },
      { role: "tool", content: "next after a", toolCallId: "c00000000", name: "get" },
      { role: "user", content: "hint: 49 turns are left; plan so that you can call finish with your answer in time" },
    ]);
    expect(seen).toHaveLength(7);
    const [first, ...rest] = stored.turns;
    const changed = {
      ...stored,
      turns: [{ ...first, nextRanges: [{ start: 0, end: 5 }] }, ...rest] as typeof stored.turns,
    };
    const lost = scriptedRollout({ tokenizer, policy: [ask], stored: changed, keepPrompts: true });
    await expect(runRollout(spec, changed, lost, signal)).rejects.toMatchObject({ code: "context_lost" });
  });
});

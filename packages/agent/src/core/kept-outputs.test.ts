/** What a tool gave, letter for letter, is kept whenever the model saw something else (faults 36, 37). */
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { beforeAll, expect, it } from "vitest";
import { quickstartFolder, rolloutSpec, scriptedRollout } from "../../testing/scripted-rollout.ts";
import { loadTokenizer } from "../io/load-tokenizer.ts";
import { runRollout } from "./run-rollout.ts";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
});

async function kept(outcome: ToolOutcome) {
  const finish = { output: "", finalAnswer: "7" };
  const tools = { get: () => outcome, finish: () => finish };
  const policy = ['[get(key="a")]', '[finish(answer="7")]'];
  const ports = scriptedRollout({ tokenizer, policy, tools });
  const spec = rolloutSpec(tokenizer, { maxOutputBytes: 128, maxContextTokens: 4096 });
  await runRollout(spec, null, ports, new AbortController().signal);
  return { artifacts: ports.artifacts, result: ports.stored().turns[0]?.results[0] };
}

it("plain output that fits needs no second copy", async () => {
  const { artifacts, result } = await kept({ output: "plain\n" });
  expect(artifacts).toEqual([]);
  expect(result).toMatchObject({ output: "plain\n" });
  expect(result).not.toHaveProperty("wholeBytes");
});

it("terminal codes are cleaned for the model and kept as they came", async () => {
  const raw = "get 10%\rget 100%\n\u001b[31mred\u001b[0m \u001b]0;title\u0007\n";
  const { artifacts, result } = await kept({ output: raw });
  expect(result?.output).toBe("get 100%\nred \n");
  expect(result).not.toHaveProperty("wholeBytes");
  expect(artifacts).toEqual([{ turn: 0, index: 0, name: "output.txt", text: raw }]);
});

it("a long output is cut, with its size, and kept", async () => {
  const { artifacts, result } = await kept({ output: "x".repeat(5000) });
  expect(result?.wholeBytes).toBe(5000);
  expect(artifacts.map(({ text }) => text.length)).toEqual([5000]);
});

it("a tool that kept only the ends of its output says how large it was", async () => {
  const { result } = await kept({ output: "head … tail", wholeBytes: 200_000_000 });
  expect(result).toMatchObject({ output: "head … tail", wholeBytes: 200_000_000 });
});

/** SkyRL's trainer over the bridge: its steps of a driven run, and its forward pass of rows that are stored. */
import path from "node:path";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { trainedMask } from "@rolldeck/contracts/batch-row";
import { z } from "zod";
import { skyrlPython } from "../../skyrl/testing/skyrl-python.ts";
import { askPython } from "../ask-python.ts";
import type { OutsideTrainer } from "./outside-trainer.ts";

const bridge = path.resolve(import.meta.dirname, "../../../infra/bridges/skyrl");
const Report = z.object({ gap: z.number(), gradNorm: z.number() });

const ask = <T>(
  mode: "train" | "forward",
  input: unknown,
  env: Readonly<Record<string, string>>,
  answer: z.ZodType<T>,
) => askPython({ python: skyrlPython(), script: "compare/skyrl_backend.py", args: [mode, bridge], input, env, answer });

export const skyrlBridge: OutsideTrainer = {
  name: "SkyRL bridge",
  train: async (settings, { url, token, runId }) => {
    const env = { ROLLDECK_URL: url, ROLLDECK_TOKEN: token, ROLLDECK_RUN: runId };
    return ask("train", { settings }, env, z.array(Report));
  },
  /** Of each row's tokens from its first trained one on; null before. */
  forward: async (settings, rows) => {
    const given = rows.map((row) => ({ tokens: row.tokens, mask: trainedMask(row), logprobs: row.samplerLogprobs }));
    // It makes a client and asks nothing.
    const env = { ROLLDECK_URL: "http://127.0.0.1:1", ROLLDECK_TOKEN: "none", ROLLDECK_RUN: "none" };
    const answer = await ask("forward", { settings, rows: given }, env, z.array(z.array(z.number())));
    return rows.map((row, at) => afterPrompt(row, answer[at] ?? []));
  },
};

function afterPrompt(row: BatchRow, response: readonly number[]): (number | null)[] {
  const start = row.tokens.length - response.length;
  return row.tokens.map((_, place) => response[place - start] ?? null);
}

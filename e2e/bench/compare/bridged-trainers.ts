/** Trainers over their bridges: their steps of a driven run, and their forward pass of rows that are stored. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { BatchRow } from "@rolldeck/contracts/batch-row";
import { trainedMask } from "@rolldeck/contracts/batch-row";
import { z } from "zod";
import { verlPython } from "../../bridges/testing/verl-engines.ts";
import { skyrlPython } from "../../skyrl/testing/skyrl-python.ts";
import { askPython } from "../ask-python.ts";
import type { OutsideTrainer } from "./outside-trainer.ts";

const bridges = path.resolve(import.meta.dirname, "../../../infra/bridges");
const Report = z.object({ gap: z.number(), gradNorm: z.number() });

export const bridgedTrainers: readonly OutsideTrainer[] = [
  bridged("SkyRL bridge", "skyrl", skyrlPython),
  bridged("VeRL bridge", "verl", verlPython),
];

/** @param bridge its folder; `<bridge>_backend.py` beside this file is what its packages are asked by */
function bridged(name: string, bridge: string, python: () => string): OutsideTrainer {
  const ask = <T>(
    mode: "train" | "forward",
    input: unknown,
    env: Readonly<Record<string, string>>,
    answer: z.ZodType<T>,
  ) => {
    const args = [mode, path.join(bridges, bridge)];
    return askPython({ python: python(), script: `compare/${bridge}_backend.py`, args, input, env, answer });
  };
  return {
    name,
    train: async (settings, { url, token, runId }) => {
      const env = { ROLLDECK_URL: url, ROLLDECK_TOKEN: token, ROLLDECK_RUN: runId };
      return ask("train", { settings }, env, z.array(Report));
    },
    /** Of each row's tokens from its first trained one on; null before. */
    forward: async (settings, rows) => {
      const given = rows.map((row) => ({ tokens: row.tokens, mask: trainedMask(row), logprobs: row.samplerLogprobs }));
      // It makes a client and asks nothing.
      const env = { ROLLDECK_URL: "http://127.0.0.1:1", ROLLDECK_TOKEN: "none", ROLLDECK_RUN: "none" };
      // Of its own, and empty: it begins anew, with the weights that the trainer began with.
      const served = mkdtempSync(path.join(tmpdir(), "rolldeck-forward-"));
      try {
        const input = { settings: { ...settings, served }, rows: given };
        const answer = await ask("forward", input, env, z.array(z.array(z.number())));
        return rows.map((row, at) => afterPrompt(row, answer[at] ?? []));
      } finally {
        rmSync(served, { recursive: true, force: true });
      }
    },
  };
}

function afterPrompt(row: BatchRow, response: readonly number[]): (number | null)[] {
  const start = row.tokens.length - response.length;
  return row.tokens.map((_, place) => response[place - start] ?? null);
}

/** Rollouts: text is derived from the stored tokens with the run's own tokenizer, when read. */
import { dialects } from "@rolldeck/agent/core/registry";
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import { listArtifacts, readArtifact } from "@rolldeck/db/artifacts";
import { readAttemptRef } from "@rolldeck/db/reads/attempt-ref";
import { readRollout } from "@rolldeck/db/reads/read-rollout";
import { readTokens } from "@rolldeck/db/reads/read-tokens";
import { readTurns } from "@rolldeck/db/reads/read-turns";
import type { Queryable } from "@rolldeck/db/reads/rows";
import type { RolloutServices } from "../services.ts";
import { fitAnswer, turnView } from "./turn-text.ts";

const known: Readonly<Record<string, Dialect>> = dialects;
const dialectNamed = (name: string | null): Dialect | null =>
  (name !== null && Object.hasOwn(known, name) ? known[name] : undefined) ?? null;

export interface RolloutServiceOptions {
  readonly db: Queryable;
  /** The tokenizer of a model by the name a config gives it; one that can't be loaded shows ids. */
  readonly tokenizer: (model: string) => Promise<Tokenizer>;
}

export function createRolloutServices({ db, tokenizer }: RolloutServiceOptions): RolloutServices {
  return {
    get: ({ rolloutId, attempt }) => readRollout(db, rolloutId, attempt),
    artifacts: (input) => listArtifacts(db, input),
    artifact: (input) => readArtifact(db, input),
    async turns({ rolloutId, attempt, after, limit }) {
      const ref = await readAttemptRef(db, rolloutId, attempt);
      const page = await readTurns(db, { rolloutId, attempt: ref.attempt, after, limit });
      const reader = { tokenizer: await tokenizer(ref.model), dialect: dialectNamed(ref.dialect) };
      const turns = fitAnswer(page.turns.map((turn) => turnView(turn, reader)));
      return { rolloutId, attempt: ref.attempt, turns, more: page.more || turns.length < page.turns.length };
    },
    async tokens({ rolloutId, attempt, start, end }) {
      const ref = await readAttemptRef(db, rolloutId, attempt);
      const page = await readTokens(db, { rolloutId, attempt: ref.attempt, start, end });
      const reader = await tokenizer(ref.model);
      return { ...page, texts: reader.tokenTexts(page.ids) };
    },
  };
}

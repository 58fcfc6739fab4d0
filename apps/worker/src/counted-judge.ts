/** A judge whose tokens are counted, for one grading. */
import type { Judge } from "@rolldeck/contracts/ports/task";

export class CountedJudge implements Judge {
  #tokens = 0;
  readonly #judge: Judge;

  constructor(judge: Judge) {
    this.#judge = judge;
  }
  /** Read and written so far. */
  get tokens(): number {
    return this.#tokens;
  }
  readonly ask: Judge["ask"] = (messages, signal, onTokens) =>
    this.#judge.ask(messages, signal, (tokens) => {
      this.#tokens += tokens;
      onTokens?.(tokens);
    });
}

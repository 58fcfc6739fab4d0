/**
 * Loop rules: the policy repeats itself and the world answers alike. Fed with committed facts only, in order, so a resumed
 * rollout agrees; holds signs of the newest six turns and no text.
 *
 * 1. 4 turns with the same calls and the same results; 2. 3 turns with the same calls that all ended in errors;
 * 3. 3 turns with the same words and no call; 4. two different turns in alternation, three times, with the same results;
 * 5. the same bad call (no such tool, arguments that don't fit) in 3 turns in a row, whatever stands beside it.
 * A change of context starts anew: the same words mean something else over another prompt.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";
import { hashText } from "./hash-text.ts";
import { type CommittedTurn, resultsInOrder } from "./trajectory.ts";

const identicalTurns = 4;
const identicalErrors = 3;
const identicalWords = 3;
const identicalBadCalls = 3;
const alternatingTurns = 6;
const badCallCodes = ["unknown_tool", "bad_arguments"];

/** null: the rule does not apply to the turn. */
interface Signs {
  readonly observed: number | null;
  readonly failed: number | null;
  readonly said: number | null;
}
const none: Signs = { observed: null, failed: null, said: null };

export class LoopWatch {
  #signs: Signs[] = [];
  /** Turns in a row that held a bad call, by the call's sign. */
  #badCalls = new Map<number, number>();

  /** A turn without calls. @param words null where it was cut: that has limits of its own */
  addWords(words: string | null): void {
    this.#badCalls = new Map();
    this.#push({ ...none, said: words === null ? null : hashText(words) });
  }

  /** A turn whose calls have all ended. */
  addTurn(turn: CommittedTurn): void {
    const results = resultsInOrder(turn);
    const calls = turn.calls.map((call) => JSON.stringify([call.name, inOrder(call.arguments)]));
    const outputs = results.map((result) => `${result?.error?.code} ${hashText(result?.output ?? "")}`);
    const errors = results.map((result) => result?.error?.code ?? null);
    this.#push({
      observed: hashText(JSON.stringify([calls, outputs, turn.parseError])),
      failed: errors.includes(null) ? null : hashText(JSON.stringify([calls, errors])),
      said: null,
    });
    const bad = calls.filter((_, place) => badCallCodes.includes(errors[place] ?? "")).map(hashText);
    this.#badCalls = new Map(bad.map((sign) => [sign, (this.#badCalls.get(sign) ?? 0) + 1]));
  }

  reset(): void {
    this.#signs = [];
    this.#badCalls = new Map();
  }

  /** Why this is a loop, for people; null when it is none. */
  get reason(): string | null {
    if (this.#repeats(identicalTurns, "observed"))
      return `${identicalTurns} turns with the same calls and the same results`;
    if (this.#repeats(identicalErrors, "failed"))
      return `${identicalErrors} turns with the same calls, all of them errors`;
    if (this.#repeats(identicalWords, "said")) return `${identicalWords} turns with the same words and no call`;
    if (this.#alternates()) return "the same two turns in alternation, three times, with the same results";
    if ([...this.#badCalls.values()].some((turns) => turns >= identicalBadCalls))
      return `the same call that can't run in ${identicalBadCalls} turns in a row`;
    return null;
  }

  #push(signs: Signs): void {
    this.#signs.push(signs);
    if (this.#signs.length > alternatingTurns) this.#signs.shift();
  }

  #repeats(count: number, of: keyof Signs): boolean {
    if (this.#signs.length < count) return false;
    const [first, ...rest] = this.#signs.slice(-count).map((signs) => signs[of]);
    return first !== null && rest.every((other) => other === first);
  }

  #alternates(): boolean {
    const [a, b, ...rest] = this.#signs.map(({ observed }) => observed);
    if (rest.length < alternatingTurns - 2 || a === null || b === null || a === b) return false;
    return rest.every((sign, place) => sign === (place % 2 === 0 ? a : b));
  }
}

/** Key order in arguments is not a difference the tool sees. */
const inOrder = (args: JsonObject) => Object.entries(args).sort(([a], [b]) => (a < b ? -1 : 1));

/**
 * A thread's conversation as messages, for servers that take no tokens. Kept only when such a server asks before the first
 * answer has come: token wires never pay for it. Texts of sampled turns are read when asked for, once.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";

type Entry = () => readonly ChatMessage[];

export class Transcript {
  #read: ChatMessage[];
  #unread: Entry[] = [];
  #state: "unasked" | "asked" | "dropped" | "lost" = "unasked";

  constructor(opening: readonly ChatMessage[]) {
    this.#read = [...opening];
  }

  add(entry: Entry): void {
    if (this.#state === "unasked" || this.#state === "asked") this.#unread.push(entry);
  }

  /** A new beginning; what was said before is gone. */
  restart(opening: readonly ChatMessage[]): void {
    if (this.#state === "dropped") return;
    // From here on everything is known again.
    if (this.#state === "lost") this.#state = "unasked";
    this.#read = [...opening];
    this.#unread = [];
  }

  /** Storage holds tokens, not the messages of a changed context: they can't be told again. */
  lose(): void {
    this.restart([]);
    this.#state = "lost";
  }

  /** After a model call: nobody who did not ask by now ever will. */
  settle(): void {
    if (this.#state !== "unasked") return;
    this.restart([]);
    this.#state = "dropped";
  }

  /** Messages so far; the array grows with the thread. @throws BoundaryError("infrastructure") when they are lost */
  messages(): readonly ChatMessage[] {
    if (this.#state === "lost") {
      const message = "the conversation after a change of context can't be told again to a server that takes no tokens";
      throw new BoundaryError("infrastructure", "context_lost", message);
    }
    this.#state = "asked";
    for (const entry of this.#unread) this.#read.push(...entry());
    this.#unread = [];
    return this.#read;
  }
}

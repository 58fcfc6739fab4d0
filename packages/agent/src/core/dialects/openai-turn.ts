/**
 * One answer of a chat-completions server as the text of a turn: one JSON object
 * `{"reasoning"?, "content"?, "tool_calls"?: [{"id", "name", "arguments"}]}`, `arguments` being the raw text the model wrote.
 * Invariants: absent, null, empty and `[]` are all left out, so they give the same text; every call has its own id.
 */
export interface OpenAiCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote it: JSON or not. */
  readonly arguments: string;
}
export interface OpenAiAnswer {
  readonly reasoning: string;
  readonly content: string;
  readonly toolCalls: readonly OpenAiCall[];
}

/** Parts in a fixed order. */
export function openAiTurnText({ reasoning, content, toolCalls }: OpenAiAnswer): string {
  const calls = toolCalls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments }));
  return JSON.stringify({
    ...(reasoning === "" ? {} : { reasoning }),
    ...(content === "" ? {} : { content }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  });
}

/** Ids as the server gave them; a missing or repeated one is replaced, so that each result finds its call. */
export function withOwnIds(calls: readonly OpenAiCall[]): OpenAiCall[] {
  const taken = new Set(calls.map(({ id }) => id));
  const used = new Set<string>([""]);
  return calls.map((call, index) => {
    let { id } = call;
    for (let n = index; used.has(id); n++) {
      const made = `call_${n}`;
      if (!taken.has(made)) id = made;
      taken.add(made);
    }
    used.add(id);
    return { ...call, id };
  });
}

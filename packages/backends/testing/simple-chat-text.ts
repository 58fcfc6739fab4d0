/** A chat answer as JSON of its parts: enough to test the wire with; the worker gives the dialect's own. */
import { z } from "zod";
import type { ChatText } from "../src/openai/chat-text.ts";

const Call = z.object({ function: z.object({ name: z.string().default(""), arguments: z.string().default("") }) });
const Message = z.object({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z.array(Call).nullish(),
});

/** Streams of well-behaved servers only: a piece with a name begins a call. */
export const simpleChatText: ChatText = {
  whole: (message) => {
    const all = collector();
    all.push(message);
    return all.text();
  },
  stream: () => collector(),
};

function collector() {
  let content = "";
  let reasoning = "";
  const calls: { name: string; arguments: string }[] = [];
  return {
    push: (json: unknown): void => {
      const piece = Message.parse(json);
      content += piece.content ?? "";
      reasoning += piece.reasoning_content ?? "";
      for (const { function: made } of piece.tool_calls ?? []) {
        const last = calls.at(-1);
        if (made.name !== "" || last === undefined) calls.push({ ...made });
        else last.arguments += made.arguments;
      }
    },
    text: (): string => JSON.stringify({ reasoning, content, calls }),
  };
}

/**
 * What a memory agent sees: the question, its own memory and one part of the text, or, after the last part, the request to
 * answer. Pure; the task's opening messages and the tool that goes on to the next part both come from here, so a restart
 * always looks like an opening. Invariant: nothing of an earlier part is shown but what the memory says of it.
 */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import { z } from "zod";

/**
 * The state of an instance that is read part by part. `style`: `full` explains everything in words; `short` says it in a few
 * characters, for policies that pay a token for each.
 */
export const MemoryState = z.object({
  question: z.string(),
  chunks: z.array(z.string()).min(1),
  style: z.enum(["full", "short"]).default("full"),
});
export type MemoryState = z.infer<typeof MemoryState>;

/**
 * @param part which of `chunks` is shown, from 0; at their number and past it none is, and the answer is asked for
 * @param memory what the agent wrote last; "" at the opening
 */
export function memoryMessages(state: MemoryState, part: number, memory: string): ChatMessage[] {
  return state.style === "short"
    ? [{ role: "user", content: shortText(state, part, memory) }]
    : [
        { role: "system", content: instructions },
        { role: "user", content: fullText(state, part, memory) },
      ];
}

const instructions = `You answer one question about a long text. The text comes in parts, one at a time, and a part is gone once you go on. All that stays is your memory.

While parts are left: call next_with_summary. Its summary becomes your whole memory, so repeat what you want to keep and add what this part says that may help to answer. Keep it short.
When no part is left: call finish with the answer alone.`;

function fullText({ question, chunks }: MemoryState, part: number, memory: string): string {
  const chunk = chunks[part];
  const remembered = `Question: ${question}\n\nYour memory:\n${memory === "" ? "(empty)" : memory}`;
  return chunk === undefined
    ? `${remembered}\n\nAll ${chunks.length} parts are read. Answer the question from your memory with finish.`
    : `${remembered}\n\nPart ${part + 1} of ${chunks.length}:\n${chunk}`;
}

function shortText({ question, chunks }: MemoryState, part: number, memory: string): string {
  const chunk = chunks[part];
  return `q ${question}\nm ${memory}\n${chunk === undefined ? "end" : `t ${chunk}`}`;
}

/**
 * A row of a long-text question set, RULER's HotpotQA shape: the question, the text (documents, or one context that holds
 * them) and the answers of which any will do. Nothing of it is changed; other fields are left alone.
 */
import { z } from "zod";

const Answers = z.union([
  z.array(z.string().min(1)).min(1),
  z
    .string()
    .min(1)
    .transform((answer) => [answer]),
]);

export const MemoryRow = z
  .object({
    question: z.string().min(1),
    documents: z.array(z.string()).min(1).optional(),
    context: z.string().min(1).optional(),
    answers: Answers.optional(),
    answer: Answers.optional(),
  })
  .transform((row, refusal) => {
    const { question } = row;
    const answers = row.answers ?? row.answer;
    if (answers === undefined) return refuse(refusal, "answers", "a row needs answers");
    if ((row.documents === undefined) === (row.context === undefined)) {
      return refuse(refusal, "documents", "a row needs either documents or a context");
    }
    return { question, answers, text: row.context ?? joinDocuments(row.documents ?? []) };
  });
export type MemoryRow = z.output<typeof MemoryRow>;

function refuse(context: z.RefinementCtx, field: string, message: string): never {
  context.addIssue({ code: "custom", path: [field], message });
  return z.NEVER;
}

/** Each under its number, unless it carries one. */
const joinDocuments = (documents: readonly string[]): string =>
  documents.map((text, at) => (/^Document \d+:/u.test(text) ? text : `Document ${at + 1}:\n${text}`)).join("\n\n");

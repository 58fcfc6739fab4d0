import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";

/** What the model is told. How a call is written is the dialect's to say. */
export const searchMessages = (question: string): ChatMessage[] => [
  {
    role: "user",
    content: [
      "Answer the question below. You may not know the answer, or know it wrongly: look things up with local_search, as often as you need. Each line of its result is a document: [id] title: text.",
      "A question may take several steps: what one search tells you may be what the next has to ask for.",
      "When you know the answer, give it with finish: the name, number or few words that were asked for, without a sentence around them.",
      "",
      `Question: ${question}`,
    ].join("\n"),
  },
];

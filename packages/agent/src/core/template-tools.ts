/**
 * Who describes the tools: the chat template, when it takes tools and writes their calls the way the run's dialect reads them;
 * the dialect otherwise. Found out once, by showing the template a tool and a call and reading the call back.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ChatMessage, Tokenizer } from "@rolldeck/contracts/ports/tokenizer";

const tool: ToolSpec = {
  name: "look_up",
  description: "Looks a key up",
  parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
};
const question: ChatMessage = { role: "user", content: "x" };
const answer: ChatMessage = {
  role: "assistant",
  content: "",
  toolCalls: [{ id: "c00000000", name: tool.name, arguments: { key: "value" } }],
};

const known = new WeakMap<Tokenizer, Map<Dialect, boolean>>();

export function describesTools(tokenizer: Tokenizer, dialect: Dialect): boolean {
  const answers = known.get(tokenizer) ?? new Map<Dialect, boolean>();
  known.set(tokenizer, answers);
  const found = answers.get(dialect) ?? tryTool(tokenizer, dialect);
  answers.set(dialect, found);
  return found;
}

function tryTool(tokenizer: Tokenizer, dialect: Dialect): boolean {
  try {
    const bare = tokenizer.render([question], { generationPrompt: true });
    const prompt = tokenizer.render([question], { generationPrompt: true, tools: [tool] });
    if (prompt.length === bare.length) return false;
    const whole = tokenizer.render([question, answer], { generationPrompt: false, tools: [tool] });
    if (!prompt.every((token, index) => token === whole[index])) return false;
    const parsed = dialect.parse(turnText(tokenizer, whole.slice(prompt.length)), [tool]);
    const [call, ...more] = parsed.calls;
    // Marks of another format that are left over, or a mended call, mean that the two only resemble each other.
    const clean = parsed.error === null && parsed.repairs.length === 0 && parsed.content.trim() === "";
    return clean && more.length === 0 && call?.name === tool.name && call.arguments.key === "value";
  } catch {
    // A template that takes no tools or no calls leaves them to the dialect.
    return false;
  }
}

/**
 * An answer that makes these calls, as the template writes it: with the family's own marks, which text can't spell, and the end
 * token. Null where the dialect writes calls.
 */
export function calledTokens(
  tokenizer: Tokenizer,
  dialect: Dialect,
  calls: NonNullable<ChatMessage["toolCalls"]>,
): number[] | null {
  if (!describesTools(tokenizer, dialect)) return null;
  const prompt = tokenizer.render([question], { generationPrompt: true });
  const called: ChatMessage = { role: "assistant", content: "", toolCalls: calls };
  const whole = tokenizer.render([question, called], { generationPrompt: false });
  const end = whole.findIndex((token, at) => at >= prompt.length && tokenizer.stopTokens.includes(token));
  const begins = prompt.every((token, at) => token === whole[at]);
  return begins && end !== -1 ? whole.slice(prompt.length, end + 1) : null;
}

/** Up to the first end token. */
function turnText(tokenizer: Tokenizer, tokens: readonly number[]): string {
  const end = tokens.findIndex((token) => tokenizer.stopTokens.includes(token));
  return tokenizer.decode(end === -1 ? tokens : tokens.slice(0, end));
}

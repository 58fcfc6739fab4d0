/**
 * Some templates take no system message, or want users and assistants in turn. What they refuse in one form they are given in
 * another that says the same: user messages in a row as one, the system text before the first user's words.
 */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";

/** @throws what the template says of the messages as they came, when it refuses every form */
export function renderAccepted(
  messages: readonly ChatMessage[],
  render: (messages: readonly ChatMessage[]) => number[],
): number[] {
  try {
    return render(messages);
  } catch (refused) {
    const joined = joinUsers(messages);
    for (const form of [joined, joinUsers(foldSystem(messages))]) {
      if (form.length === messages.length) continue;
      try {
        return render(form);
      } catch {
        // The first refusal is about what was really asked for.
      }
    }
    throw refused;
  }
}

function joinUsers(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const joined: ChatMessage[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last?.role === "user" && message.role === "user")
      joined[joined.length - 1] = { ...last, content: `${last.content}\n\n${message.content}` };
    else joined.push(message);
  }
  return joined;
}

function foldSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const [first, ...rest] = messages;
  return first?.role === "system" ? [{ role: "user", content: first.content }, ...rest] : messages;
}

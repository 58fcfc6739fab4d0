/**
 * Where the answer begins in a text that may start with thinking: after the last `</think>`; calls written while thinking are
 * thoughts, not calls. Thinking that never ends leaves no answer.
 */
export function answerStart(text: string): number {
  const close = text.lastIndexOf("</think>");
  const open = text.lastIndexOf("<think>");
  if (open > close) return text.length;
  return close === -1 ? 0 : close + "</think>".length;
}

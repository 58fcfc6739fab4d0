/**
 * Does a server's refusal mean that the prompt leaves no room? Wordings of vLLM, SGLang, llama.cpp, OpenAI, gateways before them, and
 * our GPU worker. Pure. Callers look at the status first: only a refusal of the request (400, 413, 422) can mean this.
 */
const contextWords: readonly RegExp[] = [
  /maximum context length/i,
  /model'?s context length/i,
  /available context size/i,
  /context[_ ](length|window|size)[_ ](is )?exceeded/i,
  /exceeds? (the )?(model'?s )?(max(imum)? )?(context|sequence) (length|window|size)/i,
  /max(imum)?[_ ]model[_ ]len/i,
  /(input|prompt) is too long/i,
  /maximum (prompt|input) length/i,
  // Our GPU worker.
  /exceed the context of \d/i,
  /the context holds \d/i,
  // No room is left for a single token: what is asked for is always 1 or more before a server takes its prompt off.
  /(?<!min_)tokens\b[^.]*at least 1\b/i,
  // Said of nothing by name; where a server names the setting, its name stands before.
  /^(must be )?at least 1\b/i,
];

export const saysContextFull = (message: string): boolean => contextWords.some((words) => words.test(message));

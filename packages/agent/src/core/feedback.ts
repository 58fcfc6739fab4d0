/** What the model is told when a call could not run. Always names what is wrong and what would be right. */
import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { ToolCall } from "@rolldeck/contracts/segments";

/** Model text inside a message to the model is quoted and short: it may be of any length and hold anything. */
const quote = (text: string): string => JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}...` : text);

const nameList = (tools: readonly ToolSpec[]): string => tools.map(({ name }) => name).join(", ");

export const unknownTool = (call: ToolCall, tools: readonly ToolSpec[]): string =>
  `error: there is no tool named ${quote(call.name)}; the tools are: ${nameList(tools)}`;

export const badArguments = (call: ToolCall, problems: readonly string[], tool: ToolSpec): string =>
  `error: bad arguments for ${call.name}: ${problems.join("; ")}. Its parameters: ${JSON.stringify(tool.parameters)}`;

export const notRun = "not run: an earlier call of this turn ended the work";

export const notRunAfterChange = "not run: an earlier call of this turn changed the context";

/** @param format a call as the dialect writes it */
export const noCall = (tools: readonly ToolSpec[], format: string): string =>
  `error: no tool call found. Answer with a call such as ${format}; the tools are: ${nameList(tools)}`;

export const malformedCall = (problem: string, format: string): string =>
  `error: a tool call could not be read: ${problem}\nWrite calls such as ${format}`;

export const otherFormat = (dialect: string, format: string): string =>
  `no tool call found; the text looks like another format, this run reads ${dialect} calls such as ${format}`;

export const tooManyCalls = (calls: number): string =>
  `error: one call a turn, please: this turn held ${calls} and none of them was run. Write the first one alone, read its result, then go on`;

export const callsLeftOut = (calls: number, run: number): string =>
  `error: this turn held ${calls} calls and only the first ${run} were run; write fewer at once, and the others again if they are still wanted`;

/** A cut turn forgot nothing: its limit was too near. @param thinking the whole turn was thinking */
export function cutTurn(tokens: number, thinking: boolean): string {
  const said = `your last turn was cut after ${tokens} tokens, before its end; nothing of it was run.`;
  return thinking
    ? `${said} All of it was thinking: think less this time and write the call`
    : `${said} Write a shorter turn: less text before the call, or the work in smaller parts`;
}

export const delegationTooDeep = (depth: number): string =>
  `error: a sub-agent at depth ${depth} can't hand work on to another one; do it with your own tools`;

export const subAgentWithoutAnswer = (ending: string, reason: string | null): string =>
  `error: the sub-agent ended without an answer: ${reason ?? ending}`;

/** What the agent reads first: how it works here, and the task's instruction as its author wrote it. */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import type { HarborTask } from "./harbor-task.ts";
import { type HarborOptions, toolsOf } from "./options.ts";

const styles = {
  react:
    "You are working in a Linux sandbox through tools. Think about what is asked, look around first, act in small steps, and check your work by running it.",
  codeact:
    "You are an agent that solves tasks by running commands in a Linux sandbox. Each turn, say briefly what you are about to do and why, then run it and read what it printed. Check your work by running it.",
} as const;

/** @param step index of the step, from 0 */
export function harborMessages(task: HarborTask, step: number, options: HarborOptions): ChatMessage[] {
  const last = toolsOf(options).at(-1);
  const ending = options.answer
    ? `When you are done, call ${last} with your answer: it ends the work.`
    : `When the work is done, call ${last}: what is in the sandbox then is graded. Nobody answers questions.`;
  const notes = [...notesOf(task), ...(step === 0 ? [] : ["The sandbox is as your earlier work left it."])];
  return [
    { role: "system", content: [styles[options.agent], ending, ...notes].join("\n\n") },
    { role: "user", content: task.instructions[step] ?? "" },
  ];
}

function notesOf({ file, compose }: HarborTask): string[] {
  const { mcpServers, skillsFolder } = file.environment;
  const services = compose?.services.map(({ name }) => name) ?? [];
  return [
    ...(services.length === 0 ? [] : [`Reachable by name from the sandbox: ${services.join(", ")}.`]),
    ...mcpServers.map(({ name, at }) => `An MCP server named ${name} can be reached: ${at}`),
    ...(skillsFolder === null ? [] : [`Notes that may help are in ${skillsFolder}.`]),
  ];
}

/** What a task set may say of Harbor tasks. */
import { z } from "zod";
import type { TaskNetwork } from "./network.ts";

const Names = z.array(z.string().min(1).max(100)).max(1000).default([]);

export const HarborOptions = z.strictObject({
  tools: z
    .enum(["bash", "bash+editor", "bash+editor+search"])
    .default("bash+editor")
    .describe("What the agent has besides its answer: a shell, an editor, a search of the code"),
  agent: z
    .enum(["react", "codeact"])
    .default("react")
    .describe("Names of the tools and the opening words: bash and submit, or execute_bash and finish"),
  answer: z
    .boolean()
    .default(false)
    .describe("The agent ends with an answer in words, which the tests find in /logs/agent/answer.txt"),
  timeoutMultiplier: z.number().min(0.01).max(100).default(1).describe("Of the agent's and the tests' time limits"),
  network: z
    .union([z.enum(["task", "none"]), z.array(z.string().min(1).max(260)).min(1).max(1000)])
    .default("task")
    .describe("task = as each task says; none, or a list of hosts, narrows it and never widens it"),
  heldOutEvery: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(10)
    .describe("Without train and evaluate folders: every n-th task is held out; 0 = none, 1 = all"),
  include: Names.describe("Only tasks of these names; * stands for anything"),
  exclude: Names.describe("Not tasks of these names; * stands for anything"),
  rewardKey: z.string().min(1).max(100).default("reward").describe("Key of the reward file that is the reward"),
  successReward: z.number().default(1).describe("From this reward on a task counts as solved"),
  agentProcesses: z
    .enum(["end", "keep"])
    .default("end")
    .describe(
      "Before tests in the agent's sandbox its processes end; keep for tasks whose tests call a server it started",
    ),
  guardPrograms: z
    .boolean()
    .default(true)
    .describe("Before tests in the agent's sandbox, programs that it put in place of the image's are put back"),
});
export type HarborOptions = z.output<typeof HarborOptions>;

/** In the registry's names. */
export function toolsOf({ tools, agent, answer }: Pick<HarborOptions, "tools" | "agent" | "answer">): string[] {
  const shell = agent === "codeact" ? "execute_bash" : "bash";
  const more = {
    bash: [],
    "bash+editor": ["str_replace_editor"],
    "bash+editor+search": ["str_replace_editor", "search"],
  };
  return [shell, ...more[tools], agent === "codeact" || answer ? "finish" : "submit"];
}

export function networkOf({ network }: Pick<HarborOptions, "network">): TaskNetwork {
  if (network === "task") return { mode: "public" };
  return network === "none"
    ? { mode: "none" }
    : { mode: "allow-list", hosts: network.map((host) => host.toLowerCase()) };
}

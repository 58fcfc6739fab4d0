/** What a task set may say of software-engineering rows. */
import { hintNames } from "@rolldeck/contracts/agent-config";
import { z } from "zod";
import { templateWords } from "./images.ts";

const host = z.string().min(1).max(260);
const milliseconds = z.int().min(1_000).max(86_400_000);

export const SweOptions = z.strictObject({
  tools: z
    .enum(["bash", "bash+editor", "bash+editor+search"])
    .default("bash+editor")
    .describe("What the agent has besides its end: a shell, an editor, a search of the code"),
  agent: z
    .enum(["react", "codeact"])
    .default("react")
    .describe("Names of the tools and the opening words: bash and submit, or execute_bash and finish"),
  editor: z.enum(["openhands", "skyrl"]).default("openhands").describe("Whose texts the editor answers with"),
  hints: z
    .array(z.enum(hintNames))
    .max(hintNames.length)
    .default(["malformed-call", "failed-edit", "repeated-failure", "context-nearly-full", "steps-left"])
    .describe("Hints of a run whose agent names none"),
  statement: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/)
    .default("problem_statement")
    .describe("Column with the problem's statement"),
  comments: z
    .boolean()
    .default(false)
    .describe("The model also reads hints_text: what was said about the problem before its fix"),
  heldOutEvery: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(10)
    .describe("Of a single file: every n-th row is held out; 0 = none, 1 = all"),
  imagePrefix: z
    .string()
    .max(200)
    .regex(/^(?:[A-Za-z0-9._:-]+\/)*$/, "must be empty or end with /")
    .default("")
    .describe("Put before the images' names: a registry of your own (registry.example.org/swe/)"),
  imageTemplate: z
    .string()
    .max(300)
    .refine(hasKnownWords, `places are ${templateWords.map((word) => `{${word}}`).join(", ")}`)
    .nullable()
    .default(null)
    .describe(
      `Name of an image, with ${templateWords.map((word) => `{${word}}`).join(", ")}; null = as the data set has it`,
    ),
  network: z
    .union([z.enum(["none", "public"]), z.array(host).min(1).max(1000)])
    .default("none")
    .describe("What the agent can reach: nothing, everything, or these hosts"),
  gradeNetwork: z
    .enum(["none", "public"])
    .default("none")
    .describe("What tests can reach; public for rows whose scripts install from the network"),
  history: z
    .enum(["past", "none"])
    .default("past")
    .describe("Commits the agent can read: those up to the row's, or a single one. Later ones never"),
  cpus: z.number().min(0.1).max(256).default(2),
  memoryMb: z.int().min(64).max(1_048_576).default(4096),
  pids: z.int().min(16).max(100_000).default(512),
  agentTimeoutMs: milliseconds
    .nullable()
    .default(null)
    .describe("Wall-clock of the agent; what it left is graded. null = the run's own limits"),
  setupTimeoutMs: milliseconds.default(600_000).describe("Making the repository ready, also before grading"),
  evalTimeoutMs: milliseconds.default(1_800_000).describe("The tests"),
  onTestTimeout: z
    .enum(["unresolved", "error"])
    .default("unresolved")
    .describe(
      "Tests that run out of time: not resolved, as SWE-bench counts it, or a verifier error that is graded again",
    ),
  gradeUnchanged: z
    .boolean()
    .default(false)
    .describe(
      "Run the tests also where nothing was changed, and let them decide: checks a data set. Else: not resolved",
    ),
});
export type SweOptions = z.output<typeof SweOptions>;

function hasKnownWords(template: string): boolean {
  const known: readonly string[] = templateWords;
  return [...template.matchAll(/\{([^}]*)\}?/gu)].every(([, word]) => known.includes(word ?? ""));
}

/** In the registry's names. */
export function toolsOf({ tools, agent }: Pick<SweOptions, "tools" | "agent">): string[] {
  const more = {
    bash: [],
    "bash+editor": ["str_replace_editor"],
    "bash+editor+search": ["str_replace_editor", "search"],
  };
  return agent === "codeact" ? ["execute_bash", ...more[tools], "finish"] : ["bash", ...more[tools], "submit"];
}

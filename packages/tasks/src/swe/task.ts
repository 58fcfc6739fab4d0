/**
 * Real software engineering: a repository with a known bug, an agent that fixes it in a container, tests that tell. Rows of
 * SWE-bench, SWE-Gym, SWE-smith and R2E-Gym as they are published; see docs/swe.md.
 */
import { InputError } from "@rolldeck/contracts/errors";
import type { NetworkPolicy, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Task, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { z } from "zod";
import { instanceState } from "../instance-state.ts";
import { parseOptions } from "../parse-options.ts";
import { type Dataset, openDataset } from "../rows/open-dataset.ts";
import { rowInstance } from "../rows/row-instance.ts";
import { collectPatch } from "./collect.ts";
import { gradeSwe } from "./grade.ts";
import { hasConda, imageOf, isImageName } from "./images.ts";
import { sweMessages } from "./messages.ts";
import { SweOptions, toolsOf } from "./options.ts";
import { r2ePath } from "./r2e-script.ts";
import { type SweRow, sweColumns, sweKinds, sweRow } from "./row.ts";
import { setUpRepository } from "./set-up.ts";
import { solveSwe } from "./solve.ts";

const needed = "swe needs a data set: rows of SWE-bench, SWE-Gym, SWE-smith or R2E-Gym, as JSONL or Parquet";

/** Where images of all these data sets have the repository. */
const folder = "/testbed";

const Row = z.object({
  kind: z.enum(sweKinds),
  instanceId: z.string(),
  repo: z.string(),
  version: z.string().nullable(),
  baseCommit: z.string().nullable(),
  statement: z.string(),
  hintsText: z.string().nullable(),
  image: z.string(),
  patch: z.string().nullable(),
  testPatch: z.string(),
  failToPass: z.array(z.string()),
  passToPass: z.array(z.string()),
  evalType: z.enum(["pass_and_fail", "fail_only"]),
  evalScript: z.string().nullable(),
  logParser: z.string().nullable(),
  expected: z.record(z.string(), z.string()).nullable(),
  commitContent: z.string().nullable(),
});
/** `shell` and `editor` are the tools'. */
const State = z.object({ swe: Row });
const rowOf = (instance: TaskInstance) => instanceState(State, instance, "no software-engineering row").swe;

const unopened = {
  name: "swe",
  description: "Fix a bug of a real repository in a container; the tests of its true fix tell.",
  sandbox: "image",
  tools: toolsOf(SweOptions.parse({})),
  defaults: { maxTurns: 50, maxContextTokens: 32_768, hints: SweOptions.parse({}).hints },
  // Doing nothing is then judged by the tests, not by the rule that nothing changed.
  checkOptions: { gradeUnchanged: true },
  size: () => 0,
  instance: (): TaskInstance => {
    throw new RangeError(needed);
  },
  messages: (instance) => sweMessages(rowOf(instance), folder, SweOptions.parse({})),
  verify: async () => {
    throw new RangeError(needed);
  },
} satisfies Task;

export const swe = {
  ...unopened,
  open: async ({ dataset, options }) => {
    const parsed = parseOptions(SweOptions, options);
    if (dataset === null) throw new InputError([{ path: "dataset", message: needed }]);
    const schema = sweRow(parsed.statement).superRefine((row, refusal) => {
      const image = imageOf(row, parsed);
      const message = `gives ${JSON.stringify(image.slice(0, 200))}, which is no name of an image`;
      if (!isImageName(image)) refusal.addIssue({ code: "custom", path: ["image"], message });
    });
    const rows = await openDataset(dataset, schema, parsed.heldOutEvery, {
      nameOf: ({ instanceId }) => instanceId,
      columns: [...sweColumns, parsed.statement],
    });
    return overRows(rows, parsed);
  },
} satisfies Task;

function overRows(rows: Dataset<SweRow>, options: SweOptions): Task {
  const { agentTimeoutMs, setupTimeoutMs } = options;
  return {
    ...unopened,
    tools: toolsOf(options),
    defaults: { ...unopened.defaults, hints: options.hints },
    size: (split) => rows.size(split),
    instance: (split, index) => rowInstance(rows, { split, index }, (row) => stateOf(row, options)),
    messages: (instance) => sweMessages(rowOf(instance), folder, options),
    sandboxFor: (instance) => sandboxFor(rowOf(instance), options, "agent"),
    maxRunMs: () => agentTimeoutMs,
    setUp: (instance, sandbox, signal) =>
      setUpRepository(rowOf(instance), sandbox, { history: options.history, timeoutMs: setupTimeoutMs }, signal),
    collect: (_, sandbox, signal) => collectPatch(sandbox, setupTimeoutMs, signal),
    solve: (instance, sandbox, signal) => solveSwe(rowOf(instance), sandbox, setupTimeoutMs, signal),
    verify: (instance, rollout, scene) => {
      const row = rowOf(instance);
      return gradeSwe({ row, spec: sandboxFor(row, options, "grade"), options }, rollout, scene);
    },
  };
}

function stateOf(row: SweRow, options: SweOptions): JsonObject {
  const image = imageOf(row, options);
  const startup: JsonObject = hasConda(image)
    ? { startup: "source /opt/miniconda3/bin/activate && conda activate testbed" }
    : {};
  return {
    swe: {
      ...row,
      image,
      failToPass: [...row.failToPass],
      passToPass: [...row.passToPass],
      expected: row.expected && { ...row.expected },
    },
    shell: { cwd: folder, ...startup },
    editor: { profile: options.editor },
  };
}

/** The same image and limits for the agent and for tests. */
function sandboxFor(
  { image, kind }: Pick<z.output<typeof Row>, "image" | "kind">,
  { cpus, memoryMb, pids, network, gradeNetwork }: SweOptions,
  use: "agent" | "grade",
): TaskSandbox {
  const path: Record<string, string> = kind === "r2e-gym" ? { PATH: r2ePath } : {};
  // Programs that show text a page at a time wait for a key that nobody presses.
  const pagers = { PAGER: "cat", GIT_PAGER: "cat", MANPAGER: "cat" };
  return {
    image: { kind: "name", name: image },
    resources: { cpus, memoryMb, pids, diskMb: null },
    network: use === "agent" ? policyOf(network) : policyOf(gradeNetwork),
    workdir: folder,
    environment: use === "agent" ? { ...path, ...pagers } : path,
    services: [],
  };
}

function policyOf(network: SweOptions["network"]): NetworkPolicy {
  return typeof network === "string" ? { mode: network } : { mode: "allow-list", hosts: network };
}

/**
 * An OpenAI-compatible endpoint that knows nothing of the set: the one that whoever runs the suite sets (ROLLDECK_SWE_ENDPOINT, with
 * ROLLDECK_SWE_ENDPOINT_MODEL and ROLLDECK_SWE_ENDPOINT_KEY), else a server in a process of its own that looks around and hands in
 * nothing. It is listed under one name, so that runs are launched on either in the same way.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { root } from "../../walks/testing/walk-stack.ts";

export const anyEndpointName = "any";
const keyVariable = "ANY_ENDPOINT_KEY";

const Settings = z.object({
  ROLLDECK_SWE_ENDPOINT: z.url().optional(),
  ROLLDECK_SWE_ENDPOINT_MODEL: z.string().min(1).default("any"),
  ROLLDECK_SWE_ENDPOINT_KEY: z.string().min(1).optional(),
});

export interface AnyEndpoint {
  /** Whether somebody set it: then what it answers is a model's. */
  readonly isUsers: boolean;
  /** An entry of the operator's list. */
  readonly listed: Readonly<Record<string, unknown>>;
  /** Where that finds its key. */
  readonly env: Readonly<Record<string, string>>;
  /** Null = it takes none. */
  readonly key: string | null;
  close(): Promise<void>;
}

/** @param folder for what the stand-in is told @throws ZodError for an address that is none */
export async function startAnyEndpoint(
  variables: Readonly<Record<string, string | undefined>>,
  folder: string,
): Promise<AnyEndpoint> {
  const set = Settings.parse(variables);
  const key = set.ROLLDECK_SWE_ENDPOINT_KEY ?? null;
  const entry = { name: anyEndpointName, kind: "openai-chat", model: set.ROLLDECK_SWE_ENDPOINT_MODEL };
  if (set.ROLLDECK_SWE_ENDPOINT !== undefined) {
    return {
      isUsers: true,
      listed: { ...entry, urls: [set.ROLLDECK_SWE_ENDPOINT], ...(key !== null && { keyEnv: keyVariable }) },
      env: key === null ? {} : { [keyVariable]: key },
      key,
      close: async () => undefined,
    };
  }
  const { url, server } = await startStandIn(folder);
  return {
    isUsers: false,
    listed: { ...entry, urls: [url] },
    env: {},
    key: null,
    close: async () => {
      server.kill("SIGTERM");
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
    },
  };
}

const call = (id: string, name: string, args: object) => ({ id, name, arguments: JSON.stringify(args) });
const answers = [
  { content: "I look around.", calls: [call("look", "bash", { command: "cd /testbed && git status --short && ls" })] },
  { content: "I have no idea.", calls: [call("end", "submit", { message: "Nothing changed." })] },
];

async function startStandIn(folder: string): Promise<{ url: string; server: ChildProcess }> {
  const script = path.join(folder, "answers.json");
  writeFileSync(script, JSON.stringify(answers));
  const program = path.join(root, "packages/backends/testing/completion-server.ts");
  const server = spawn(process.execPath, ["--import", "tsx", program, "--script", script], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const first = await new Promise<string>((resolve, reject) => {
    createInterface({ input: server.stdout }).once("line", resolve);
    server.once("exit", (code) => reject(new Error(`the stand-in ended with ${code}`)));
  });
  return { url: z.object({ url: z.url() }).parse(JSON.parse(first)).url, server };
}

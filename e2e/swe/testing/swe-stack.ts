/**
 * The stack that the walks over the offline set go through: the set built into a data root, real Docker for sandboxes, the scripted
 * endpoint in the operator's list, and everything of a walk's own stack. Ends with `close`.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { SandboxRuntimes } from "@rolldeck/sandbox/runtimes";
import { parseSandboxSettings } from "@rolldeck/sandbox/settings";
import { type StartedTestDocker, startTestDocker } from "@rolldeck/sandbox/testing/start-test-docker";
import { readSetList } from "@rolldeck/tasks/offline-set/set-list";
import { buildSet } from "../../../apps/cli/src/task-build/build-set.ts";
import { DockerImages } from "../../../apps/cli/src/task-build/docker-images.ts";
import { root, startWalkStack, type WalkStack } from "../../walks/testing/walk-stack.ts";
import { type AnyEndpoint, startAnyEndpoint } from "./any-endpoint.ts";
import { PolicyRow } from "./policies.ts";
import { type ScriptedEndpoint, startScriptedEndpoint } from "./scripted-endpoint.ts";
import { scriptedPolicy } from "./scripted-policy.ts";

export interface SweStack {
  readonly walk: WalkStack;
  readonly endpoint: ScriptedEndpoint;
  /** One that a user sets, or its stand-in. */
  readonly anyEndpoint: AnyEndpoint;
  readonly rows: readonly PolicyRow[];
  close(): Promise<void>;
}

/** A key that the endpoint asks for and that must show up nowhere. */
export const endpointKey = "sk-scripted-canary";

const say = (line: string): void => void process.stderr.write(`swe: ${line}\n`);

/** @param ids entries of the list that are built. @throws Error that says what is missing (Docker, a task that can't be built) */
export async function startSweStack(ids: readonly string[]): Promise<SweStack> {
  const docker = await startTestDocker(say);
  if ("missing" in docker) throw new Error(docker.missing);
  const home = mkdtempSync(path.join(tmpdir(), "rolldeck-swe-"));
  const undo: (() => unknown)[] = [() => docker.stop(), () => rmSync(home, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const each of undo.splice(0).reverse()) await each();
  };
  try {
    const data = path.join(home, "data");
    await buildRows(ids, docker, path.join(data, "swe-set"));
    const lines = readFileSync(path.join(data, "swe-set/evaluate.jsonl"), "utf8").trim().split("\n");
    // The same rows to train on: a split of its own.
    mkdirSync(path.join(data, "swe-train"));
    writeFileSync(path.join(data, "swe-train/train.jsonl"), `${lines.join("\n")}\n`);
    const rows = lines.map((line) => PolicyRow.parse(JSON.parse(line)));
    const endpoint = await startScriptedEndpoint(rows, { keys: [endpointKey] });
    undo.push(() => endpoint.close());
    const file = path.join(home, "endpoints.json");
    const listed = {
      name: "scripted",
      kind: "openai-chat",
      urls: [endpoint.server.url],
      keyEnv: "SCRIPTED_KEY",
      model: "script",
    };
    const anyEndpoint = await startAnyEndpoint(process.env, home);
    undo.push(() => anyEndpoint.close());
    writeFileSync(file, JSON.stringify([listed, anyEndpoint.listed]));
    const walk = await startWalkStack({
      policy: scriptedPolicy(rows),
      env: {
        ROLLDECK_ENDPOINTS: file,
        SCRIPTED_KEY: endpointKey,
        ...anyEndpoint.env,
        ROLLDECK_DATA_ROOTS: data,
        ROLLDECK_DATA_DIR: path.join(home, "worker"),
        ROLLDECK_DOCKER_SOCKET: docker.socket,
        ROLLDECK_SANDBOX: "docker",
      },
    });
    undo.push(() => walk.close());
    return { walk, endpoint, anyEndpoint, rows, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** On the tests' own base image, so that no second one is made; what was downloaded once is kept between runs. */
async function buildRows(ids: readonly string[], docker: StartedTestDocker, out: string): Promise<void> {
  const entries = readSetList(readFileSync(path.join(root, "infra/swe-set/tasks.yaml"), "utf8"));
  const cache = path.join(tmpdir(), `rolldeck-test-cache-${process.getuid?.() ?? 0}`, "swe-set");
  mkdirSync(cache, { recursive: true });
  const settings = parseSandboxSettings({ ROLLDECK_DOCKER_SOCKET: docker.socket }, root);
  const runtimes = new SandboxRuntimes({
    settings,
    deployment: `swe-walk-${process.pid}`,
    stateFolder: cache,
    onTrouble: say,
  });
  try {
    const { failed } = await buildSet(
      entries.filter(({ id }) => ids.includes(id)),
      {
        out,
        cache,
        debianSources: process.env.ROLLDECK_DEBIAN_SOURCES || null,
        images: new DockerImages(docker.socket),
        runtime: runtimes.get("docker"),
        base: docker.image,
        gradeScript: readFileSync(path.join(root, "infra/swe-set/grade.py"), "utf8"),
        runs: 1,
        say,
        signal: new AbortController().signal,
      },
    );
    if (failed.length > 0) throw new Error(failed.map(({ id, reason }) => `${id}: ${reason}`).join("; "));
  } finally {
    await runtimes.disconnect();
  }
}

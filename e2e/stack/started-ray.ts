/**
 * A real Ray of one node, asked on loopback with a token. It ends with this process however that ends: a shell waits for the end of
 * a pipe and stops it.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { RayFailure } from "@rolldeck/fleet/ray/ray-failure";
import { connectRayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { freePort } from "@rolldeck/fleet/testing/docker-hosts";
import { prepareLocked } from "../runner/locked-environment.ts";

export interface StartedRay {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

const lock = path.resolve(import.meta.dirname, "../../infra/ray/requirements.lock");
const startMs = 200_000;
/** A machine that does much else starts it slowly; it gives its own parts half a minute. */
const patient = {
  ...{ RAY_DASHBOARD_STARTUP_TIMEOUT_S: "180", RAY_agent_register_timeout_ms: "180000" },
  ...{ RAY_worker_register_timeout_seconds: "180", RAY_raylet_start_wait_time_s: "180" },
};
/** Ends Ray when its input ends, and itself when Ray does. */
const keeper = `(trap 'kill $ray' TERM; "$@" & ray=$!; wait $ray; wait $ray; kill $$) & kept=$!
read -r _; kill $kept; wait $kept`;
const ports = [
  ...["--port", "--ray-client-server-port", "--dashboard-agent-listen-port", "--dashboard-agent-grpc-port"],
  ...["--metrics-export-port", "--runtime-env-agent-port"],
];

/** Ray gives its node half a minute to appear, whatever else the machine does, and ends where that was too short. */
const tries = 3;

export interface RayOptions {
  readonly resources?: Readonly<Record<string, number>>;
  /** What its node says that its address is; by default one of the machine's. */
  readonly nodeAddress?: string;
}

export async function startRay(options: RayOptions = {}): Promise<StartedRay> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      if (attempt === tries) throw error;
    }
  }
}

async function startOnce(options: RayOptions): Promise<StartedRay> {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const python = await prepareLocked({ name: "ray", shelf: "ray", lock, compiled: true }, say);
  // Ray makes sockets below it, whose paths may have 107 characters.
  const folder = mkdtempSync("/tmp/rdray-");
  const token = randomBytes(24).toString("hex");
  const dashboard = await freePort();
  // Given ones: for those that its parts choose, they wait for each other only some seconds.
  const given = await Promise.all(ports.map(async (flag) => [flag, String(await freePort())]));
  const room = ["--num-cpus", "2", "--object-store-memory", "80000000"];
  const flags = [
    ...["start", "--head", "--block", "--dashboard-host", "127.0.0.1", "--include-dashboard", "true"],
    ...["--dashboard-port", String(dashboard), "--disable-usage-stats", "--temp-dir", folder],
    ...[...given.flat(), ...room, "--resources", JSON.stringify(options.resources ?? {})],
    ...(options.nodeAddress === undefined ? [] : ["--node-ip-address", options.nodeAddress]),
  ];
  const env = {
    ...process.env,
    RAY_AUTH_MODE: "token",
    RAY_AUTH_TOKEN: token,
    RAY_USAGE_STATS_ENABLED: "0",
    ...patient,
  };
  const ray = path.join(path.dirname(python), "ray");
  const child = spawn("/bin/sh", ["-c", keeper, "sh", ray, ...flags], { env, stdio: ["pipe", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes: Buffer) => {
      said = (said + bytes.toString()).slice(-4_000);
    });
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin.end("\n");
      await once(child, "exit");
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${dashboard}`;
  const jobs = connectRayJobs({ url, token });
  for (
    const giveUpAt = Date.now() + startMs;
    Date.now() < giveUpAt && child.exitCode === null && child.signalCode === null;
  ) {
    // It takes jobs only when its node's agent is up, which is last. An answer that was lost has been a yes.
    const first = await jobs.submit({ submissionId: "first", entrypoint: "true" }).catch((error: unknown) => error);
    if (!(first instanceof RayFailure) || first.code === "job-exists") return { url, token, stop };
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  await stop();
  throw new Error(`Ray did not come up: ${said.trim()}`);
}

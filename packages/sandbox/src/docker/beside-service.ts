/** A service beside a sandbox: started, and waited for until it is well. */
import type { Healthcheck, SandboxService, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { z } from "zod";
import { pause } from "../shared/waiting.ts";
import { type BesideScene, besideHost, besideLabels, joined, type Place } from "./beside-container.ts";
import { containerName } from "./container-options.ts";
import { asked, containerMs, heard, refused, statusOf } from "./daemon-trouble.ts";

const pollMs = 200;
/** Looks, one after the other, at which a service without a check of its own has to run. */
const looksUp = 3;
/** A service without a check of its own is up when it runs. */
const startMs = 60_000;

/** @throws BoundaryError("sandbox"), the signal's reason */
export async function startService(
  scene: BesideScene,
  spec: SandboxSpec,
  { service, ...place }: Place & { readonly service: SandboxService },
  signal: AbortSignal,
): Promise<void> {
  const image = await scene.images.ensure(service.image, () => undefined, signal);
  const container = await asked(
    `making the service ${service.name}`,
    scene.docker.createContainer({
      name: `${containerName(spec.id)}-${service.name}`,
      Image: image.id,
      ...(service.command === null ? {} : { Cmd: [...service.command] }),
      Env: Object.entries(service.environment).map(([name, value]) => `${name}=${value}`),
      Hostname: service.name,
      Labels: besideLabels(scene, spec),
      ...(service.healthcheck === null ? {} : { Healthcheck: dockerCheck(service.healthcheck) }),
      HostConfig: besideHost(service.resources, place),
      NetworkingConfig: joined(place),
    }),
    { limitMs: containerMs },
  );
  await asked(`starting the service ${service.name}`, container.start(), { limitMs: containerMs });
  await untilUp(container, service, signal);
}

const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms)) * 1_000_000;

const dockerCheck = ({
  command,
  intervalMs,
  timeoutMs,
  startMs: start,
  retries,
}: Healthcheck): Docker.HealthConfig => ({
  Test: ["CMD", ...command],
  Interval: nanoseconds(intervalMs),
  Timeout: nanoseconds(timeoutMs),
  StartPeriod: nanoseconds(start),
  Retries: retries,
});

const State = z.object({
  State: z.object({
    Running: z.boolean(),
    ExitCode: z.number().optional(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
});

/** @throws BoundaryError("sandbox", "refused") for one that ends or never gets well: the task's own fault */
async function untilUp(
  container: Docker.Container,
  { name, healthcheck: check }: SandboxService,
  signal: AbortSignal,
): Promise<void> {
  const limitMs = check === null ? startMs : check.startMs + (check.retries + 1) * (check.intervalMs + check.timeoutMs);
  let looks = 0;
  for (const endAt = performance.now() + limitMs; performance.now() < endAt; await pause(pollMs, signal)) {
    signal.throwIfAborted();
    const { State: state } = State.parse(await inspected(container, name));
    if (!state.Running) throw refused(`the service ${name} ended (exit ${state.ExitCode ?? "unknown"})`);
    const health = state.Health?.Status;
    looks += 1;
    // One that ends at once runs for a moment, too.
    const unchecked = health === undefined || health === "none";
    if (health === "healthy" || (unchecked && looks >= looksUp)) return;
    if (health === "unhealthy") break;
  }
  throw refused(`the service ${name} did not get well in time`);
}

/** A service that ended has removed itself. */
async function inspected(container: Docker.Container, name: string): Promise<unknown> {
  try {
    return await heard(`looking at the service ${name}`, container.inspect());
  } catch (error) {
    if (statusOf(error) === 404) throw refused(`the service ${name} ended as soon as it was started`);
    throw error;
  }
}

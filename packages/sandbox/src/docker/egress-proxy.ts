/** The proxy through which an allow-list's hosts are reached: the only thing beside a sandbox with a way out. */
import { finished } from "node:stream/promises";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { SandboxService, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { ExecAnswer } from "./answers.ts";
import { type BesideScene, besideHost, besideLabels, type Place } from "./beside-container.ts";
import { containerName } from "./container-options.ts";
import { asked, containerMs } from "./daemon-trouble.ts";

const proxyPort = 3128;
export const proxyName = "egress";

/** @throws BoundaryError("sandbox"), the signal's reason */
export async function startProxy(
  scene: BesideScene,
  spec: SandboxSpec,
  place: Place,
  signal: AbortSignal,
): Promise<void> {
  const { docker, images, egress } = scene;
  if (egress.image === null || spec.network.mode !== "allow-list") return;
  const image = await images.ensure({ kind: "name", name: egress.image }, () => undefined, signal);
  const limits = { cpus: 0.5, memoryMb: 256, pids: 64, diskMb: null };
  const container = await asked(
    "making the egress proxy",
    docker.createContainer({
      name: `${containerName(spec.id)}-${proxyName}`,
      Image: image.id,
      Env: [
        `EGRESS_HOSTS=${spec.network.hosts.join(",")}`,
        `EGRESS_PORT=${proxyPort}`,
        ...(egress.allowPrivate ? ["EGRESS_ALLOW_PRIVATE=1"] : []),
      ],
      Labels: besideLabels(scene, spec),
      HostConfig: {
        ...besideHost(limits, { ...place, network: egress.network }),
        // Names are resolved outside.
        ...{ Dns: undefined, ExtraHosts: undefined, CapAdd: [] },
      },
    }),
    { limitMs: containerMs },
  );
  await asked(
    "joining a sandbox's network",
    docker.getNetwork(place.network).connect({
      Container: container.id,
      EndpointConfig: { IPAMConfig: { IPv4Address: place.address } },
    }),
  );
  await asked("starting the egress proxy", container.start(), { limitMs: containerMs });
  await untilProxyAnswers(container);
}

const knock = `import socket, time
for _ in range(200):
    try: raise SystemExit(socket.create_connection(("127.0.0.1", ${proxyPort}), 1).close())
    except OSError: time.sleep(0.05)
raise SystemExit(1)`;

/** The first command of a sandbox finds it. @throws BoundaryError("sandbox", "unavailable") */
async function untilProxyAnswers(container: Docker.Container): Promise<void> {
  try {
    const what = "knocking at the egress proxy";
    const exec = await asked(what, container.exec({ Cmd: ["python3", "-c", knock], AttachStdout: true }));
    const output = await asked(what, exec.start({ Detach: false }), { late: (stream) => stream.destroy() });
    await asked(what, finished(output.resume()), { limitMs: containerMs });
    const { ExitCode } = ExecAnswer.parse(await asked(what, exec.inspect()));
    if (ExitCode !== 0) throw new Error(`exit ${ExitCode}`);
  } catch (cause) {
    throw new BoundaryError("sandbox", "unavailable", "the egress proxy did not come up", { cause, retryable: true });
  }
}

/** Tells programs of it. */
export function proxyVariables(proxy: string | null, services: readonly SandboxService[]): Record<string, string> {
  if (proxy === null) return {};
  const address = `http://${proxy}:${proxyPort}`;
  const direct = ["localhost", "127.0.0.1", "::1", "main", ...services.map(({ name }) => name)].join(",");
  const both = (name: string, value: string) => ({ [name]: value, [name.toLowerCase()]: value });
  return { ...both("HTTP_PROXY", address), ...both("HTTPS_PROXY", address), ...both("NO_PROXY", direct) };
}

/**
 * A sandbox's container made anew under its name, from what the daemon knows of the old one: image, limits, network and labels stay,
 * files and processes do not. Invariant: a half-made one is never left.
 */
import type Docker from "dockerode";
import { sandboxGone } from "../shared/sandbox-gone.ts";
import { MadeAnswer } from "./answers.ts";
import { containerName, labels } from "./container-options.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked, containerMs, refused } from "./daemon-trouble.ts";
import { proxyName } from "./egress-proxy.ts";
import { nameLoopback, namesLoopback } from "./name-loopback.ts";
import { removeContainer } from "./remove-container.ts";

type Scene = Pick<ContainerScene, "docker" | "container" | "id">;

/**
 * @returns the new container
 * @throws BoundaryError("sandbox"), the signal's reason; "refused" where services stand beside it, which keep what was done to them
 */
export async function remakeContainer(scene: Scene, signal: AbortSignal): Promise<Docker.Container> {
  const { docker, container, id } = scene;
  const what = `resetting sandbox ${id}`;
  const old = await asked(what, container.inspect());
  const { State, Config, NetworkSettings } = MadeAnswer.parse(old);
  if (!State.Running) throw sandboxGone(id);
  await refuseServices(scene);
  signal.throwIfAborted();
  // By its own id: a container that somebody else made under the name meanwhile is theirs.
  await removeContainer(container);
  signal.throwIfAborted();
  const networkDisabled = Config.NetworkDisabled ?? false;
  const options = { ...sameOptions(id, old), NetworkDisabled: networkDisabled, ...samePlace(NetworkSettings) };
  const made = await asked(what, docker.createContainer(options), {
    limitMs: containerMs,
    late: (late) => void removeContainer(late).catch(() => undefined),
  });
  try {
    if (networkDisabled && !(await namesLoopback(made))) await nameLoopback(made);
    signal.throwIfAborted();
    await asked(what, made.start(), { limitMs: containerMs });
    signal.throwIfAborted();
    return made;
  } catch (error) {
    await removeContainer(made).catch(() => undefined);
    throw error;
  }
}

function sameOptions(id: string, { Image, Config, HostConfig }: Docker.ContainerInspectInfo) {
  const { Entrypoint, User, WorkingDir, Env, Hostname, Labels } = Config;
  return {
    ...{ name: containerName(id), Image, User, WorkingDir, Env, Hostname, Labels, HostConfig },
    ...(Entrypoint === undefined ? {} : { Entrypoint }),
    ...{ Cmd: [], OpenStdin: true, StdinOnce: false, StopSignal: "SIGKILL" },
  };
}

/** Its address in a network of its own; where it has none, the daemon's defaults are its network. */
function samePlace(settings: ReturnType<typeof MadeAnswer.parse>["NetworkSettings"]) {
  const places = Object.entries(settings?.Networks ?? {}).flatMap(([network, { IPAMConfig }]) =>
    IPAMConfig?.IPv4Address ? [[network, { IPAMConfig: { IPv4Address: IPAMConfig.IPv4Address } }] as const] : [],
  );
  return places.length === 0 ? {} : { NetworkingConfig: { EndpointsConfig: Object.fromEntries(places) } };
}

/** The proxy of an allow-list keeps nothing, and stays. */
async function refuseServices({ docker, id }: Scene): Promise<void> {
  const label = [`${labels.sandbox}=${id}`, `${labels.role}=beside`];
  const beside = await asked(`resetting sandbox ${id}`, docker.listContainers({ all: true, filters: { label } }));
  const proxy = `/${containerName(id)}-${proxyName}`;
  if (beside.some(({ Names }) => !Names.includes(proxy)))
    throw refused("services stand beside the sandbox, and they keep what was done to them");
}

/** The daemon's client itself, for what is compared with the port or must look behind it. */
import Docker from "dockerode";

export type RawContainer = Docker.Container;

export const rawContainer = (socket: string, sandboxId: string): RawContainer =>
  new Docker({ socketPath: socket }).getContainer(`rolldeck-${sandboxId}`);

/** Containers of a deployment, whatever their state. */
export async function countContainers(socket: string, deployment: string): Promise<number> {
  const label = [`rolldeck.deployment=${deployment}`];
  return (await new Docker({ socketPath: socket }).listContainers({ all: true, filters: { label } })).length;
}

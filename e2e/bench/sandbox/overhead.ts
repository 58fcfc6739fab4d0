/** What the port costs over the daemon's client: the same command through both, in turns. */
import { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { type RawContainer, rawContainer } from "@rolldeck/sandbox/testing/raw-docker";
import { median } from "../quantile.ts";
import { exec, timed } from "./bench-sandboxes.ts";

const warmUp = 10;

/** Per cent by which the median of the pairs' ratios is above 1. */
export async function measureOverhead(sandbox: Sandbox, socket: string, pairs: number): Promise<number> {
  const container = rawContainer(socket, sandbox.id);
  const port = (): Promise<number> => timed(() => exec(sandbox, ["true"]));
  const raw = (): Promise<number> => timed(() => rawExec(container));
  const ratios: number[] = [];
  for (let pair = -warmUp; pair < pairs; pair += 1) {
    // Who goes first changes, so that neither always finds the machine as the other left it.
    const [portMs, rawMs] = pair % 2 === 0 ? [await port(), await raw()] : await swapped(raw, port);
    if (pair >= 0) ratios.push(portMs / rawMs);
  }
  return (median(ratios) - 1) * 100;
}

async function swapped(raw: () => Promise<number>, port: () => Promise<number>): Promise<[number, number]> {
  const rawMs = await raw();
  return [await port(), rawMs];
}

/** As the client's own documentation does it: made, started, its output taken apart, its exit code asked for. */
async function rawExec(container: RawContainer): Promise<void> {
  const started = await container.exec({
    Cmd: ["true"],
    AttachStdout: true,
    AttachStderr: true,
    User: "0:0",
    WorkingDir: "/",
  });
  const stream = await started.start({ Detach: false });
  const chunks: Buffer[] = [];
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  container.modem.demuxStream(stream, sink, sink);
  await finished(stream.resume(), { writable: false });
  const { ExitCode } = await started.inspect();
  if (ExitCode !== 0) throw new Error(`the command ended with ${ExitCode}`);
}

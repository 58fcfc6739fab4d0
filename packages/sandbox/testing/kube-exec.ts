/** A command in a pod, as the API server's exec socket has it, over the Docker container that is the pod. */
import { PassThrough } from "node:stream";
import type Docker from "dockerode";
import type { WebSocket } from "ws";
import { z } from "zod";

export async function runExec(
  docker: Docker,
  container: Docker.Container,
  url: string,
  socket: WebSocket,
): Promise<void> {
  const query = new URL(url, "http://localhost").searchParams;
  const isOn = (name: string) => query.get(name) === "true";
  const send = (channel: number, bytes: Uint8Array) => socket.send(Buffer.concat([Buffer.from([channel]), bytes]));
  const status = (body: object) => {
    send(3, Buffer.from(JSON.stringify(body)));
    socket.close();
  };
  const taken: Promise<void> = Promise.resolve();
  // What comes before the command is started is not lost.
  const early: unknown[] = [];
  const keep = (data: unknown) => void early.push(data);
  socket.on("message", keep);
  try {
    const exec = await container.exec({
      Cmd: query.getAll("command"),
      AttachStdin: isOn("stdin"),
      AttachStdout: true,
      AttachStderr: isOn("stderr"),
      Tty: isOn("tty"),
    });
    const stream = await exec.start({ hijack: true, stdin: isOn("stdin"), Tty: isOn("tty") });
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const forward = (from: PassThrough, channel: number) =>
      from.on("data", (chunk: Buffer) => {
        send(channel, chunk);
        if (socket.bufferedAmount < 4 * 1024 * 1024) return;
        stream.pause();
        const wait = setInterval(() => {
          if (socket.bufferedAmount > 1024 * 1024 && socket.readyState === socket.OPEN) return;
          clearInterval(wait);
          stream.resume();
        }, 5);
      });
    forward(stdout, 1);
    forward(stderr, 2);
    if (isOn("tty")) stream.pipe(stdout);
    else docker.modem.demuxStream(stream, stdout, stderr);
    const take = async (frame: Buffer): Promise<void> => {
      if (frame[0] === 0) stream.write(frame.subarray(1));
      else if (frame[0] === 255 && frame[1] === 0) stream.end();
      else if (frame[0] === 4) {
        const size = z.object({ Width: z.int(), Height: z.int() }).parse(JSON.parse(frame.subarray(1).toString()));
        await exec.resize({ w: size.Width, h: size.Height }).catch(() => undefined);
      }
    };
    // One after the other: a size is set before what was typed after it arrives.
    let before = taken;
    const onFrame = (data: unknown) => {
      const frame = Buffer.isBuffer(data) ? data : Buffer.concat(data as Buffer[]);
      before = before.then(() => take(frame));
    };
    for (const frame of early.splice(0)) onFrame(frame);
    socket.off("message", keep).on("message", onFrame);
    socket.on("close", () => stream.destroy());
    // A command that ends before it has read its input breaks the stream that it comes by: how it ended is known all the same.
    let broke = false;
    stream.on("error", () => {
      broke = true;
    });
    await new Promise<void>((resolve) => stream.once("end", resolve).once("close", resolve));
    const ended = await exec.inspect().catch((error: unknown) => {
      if (broke) return { ExitCode: null, Running: true };
      throw error;
    });
    const { ExitCode: code, Running: running } = ended;
    if (running || code === null) return socket.terminate();
    if (code === 0) return status({ status: "Success" });
    status({
      status: "Failure",
      reason: "NonZeroExitCode",
      message: `command terminated with non-zero exit code: ${code}`,
      details: { causes: [{ reason: "ExitCode", message: String(code) }] },
    });
  } catch (error) {
    if (socket.readyState === socket.OPEN)
      status({ status: "Failure", reason: "InternalError", message: String(error) });
  }
}

/**
 * A spawned command at the host's end of its stream. Invariants: input that was sent after a resize reaches the command after it; the
 * command's streams are let go of when the stream is over, however it ended.
 */
import type { Sandbox, SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import type { Params, Result } from "../remote/methods.ts";
import { ResizeNote, type SpawnNote } from "../remote/remote-process.ts";
import type { Stream } from "../remote/stream.ts";
import { unlessAborted } from "../shared/waiting.ts";

/** Resolves when the command ended and all of its output was sent. @throws BoundaryError("sandbox") */
export async function serveProcess(
  box: Pick<Sandbox, "spawn">,
  request: Omit<Params<"spawn">, "sandbox">,
  stream: Stream,
): Promise<Result<"spawn">> {
  const process = await box.spawn(request, stream.over);
  stream.over.addEventListener("abort", () => void process.close(), { once: true });
  if (stream.over.aborted) await process.close();
  const resizes = new Resizes(process);
  stream.onNote((body) => {
    const asked = ResizeNote.safeParse(body);
    if (asked.success) resizes.want(asked.data);
  });
  const say = (note: SpawnNote): void => stream.note(note);
  say({ what: "started" });
  const pump = async (from: AsyncIterable<Uint8Array>, channel: 1 | 2): Promise<void> => {
    for await (const chunk of from) await stream.write(channel, chunk);
    stream.end(channel);
  };
  // A command may end, or close its stdin, before it has read everything.
  feed(process, resizes, stream).catch(() => undefined);
  const exited = process.wait().then(({ exitCode }) => say({ what: "exited", exitCode }));
  try {
    await Promise.all([exited, pump(process.stdout, 1), pump(process.stderr, 2)]);
  } finally {
    await process.close();
  }
  return {};
}

async function feed(process: SandboxProcess, resizes: Resizes, stream: Stream): Promise<void> {
  for await (const chunk of stream.reader(0)) {
    // Notes are heard as they come: what was asked for before this piece is known by now.
    await unlessAborted(resizes.done(), stream.over);
    await process.write(chunk);
  }
  await unlessAborted(resizes.done(), stream.over);
  await process.endStdin();
}

/** One at a time, and of those that wait only the last: the sizes between are nobody's any more. */
class Resizes {
  readonly #process: SandboxProcess;
  #wanted: { readonly columns: number; readonly rows: number } | null = null;
  #running: Promise<void> | null = null;

  constructor(process: SandboxProcess) {
    this.#process = process;
  }

  want(size: { readonly columns: number; readonly rows: number }): void {
    this.#wanted = size;
    this.#running ??= this.#run();
  }

  /** Resolves when none is left to do. */
  async done(): Promise<void> {
    while (this.#running !== null) await this.#running;
  }

  async #run(): Promise<void> {
    for (let size = this.#wanted; size !== null; size = this.#wanted) {
      this.#wanted = null;
      // One that ended meanwhile has no size.
      await this.#process.resize?.(size.columns, size.rows).catch(() => undefined);
    }
    this.#running = null;
  }
}

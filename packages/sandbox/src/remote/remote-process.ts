/** A spawned command at the client's end of its stream. */
import type { SandboxProcess } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import type { Call } from "./call.ts";
import { deferred } from "./deferred.ts";
import { unavailable } from "./wire-error.ts";

/** What a host says of a spawned command. */
export const SpawnNote = z.discriminatedUnion("what", [
  z.strictObject({ what: z.literal("started") }),
  z.strictObject({ what: z.literal("exited"), exitCode: z.int().nullable() }),
]);
export type SpawnNote = z.infer<typeof SpawnNote>;

/** What a client asks of it. */
export const ResizeNote = z.strictObject({
  what: z.literal("resize"),
  columns: z.int().min(1).max(10_000),
  rows: z.int().min(1).max(10_000),
});

/** Resolves when the command runs; the call's error comes instead when it does not start. */
export async function remoteProcess({ stream, result }: Call<"spawn">, tty: boolean): Promise<SandboxProcess> {
  const started = deferred<void>();
  const exited = deferred<{ exitCode: number | null }>();
  const [stdout, stderr] = [stream.reader(1), stream.reader(2)];
  stdout.open();
  stderr.open();
  stream.onNote((body) => {
    const note = SpawnNote.safeParse(body);
    if (!note.success) return;
    if (note.data.what === "started") started.resolve();
    else exited.resolve({ exitCode: note.data.exitCode });
  });
  const fail = (error: unknown): void => {
    started.reject(error);
    exited.reject(error);
  };
  result.then(() => fail(unavailable("the command ended without a word of how")), fail);
  await started.promise;
  const process: SandboxProcess = {
    stdout,
    stderr,
    write: (bytes) => stream.write(0, bytes),
    endStdin: async () => stream.end(0),
    wait: () => exited.promise,
    close: async () => stream.cancel(unavailable("the command's streams were let go")),
  };
  if (!tty) return process;
  return { ...process, resize: async (columns, rows) => stream.note({ what: "resize", columns, rows }) };
}

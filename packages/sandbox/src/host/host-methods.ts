/** What a host does for the gateway: the methods of the protocol over its runtime. Caps are applied here, before the wire. */
import type { Sandbox, SandboxRuntime, SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { collect, type Handlers } from "../remote/call.ts";
import { sendResult } from "../remote/kept-output.ts";
import { maxFileBytes, type Result } from "../remote/methods.ts";
import type { Stream } from "../remote/stream.ts";
import { gone, refused } from "../remote/wire-error.ts";
import { imageKey, type WireImage, type WireSpec } from "../remote/wire-spec.ts";
import type { ArchiveSpool } from "./archive-spool.ts";
import type { ByteBudget } from "./byte-budget.ts";
import type { ContextFolders } from "./context-folders.ts";
import type { HeldSandboxes } from "./held-sandboxes.ts";
import type { KnownImages } from "./known-images.ts";
import { serveProcess } from "./serve-process.ts";

export interface HostScene {
  readonly runtime: SandboxRuntime;
  readonly held: HeldSandboxes;
  readonly contexts: ContextFolders;
  readonly archives: ArchiveSpool;
  /** For what goes through this process whole: files, and the input of commands. */
  readonly memory: ByteBudget;
  readonly images: Pick<KnownImages, "saw">;
  /** Milliseconds of the wall clock. */
  readonly nowMs: () => number;
}

/** Whether a warm sandbox still runs commands. */
const livenessMs = 5_000;

export function hostMethods(scene: HostScene): Handlers {
  return { ...lifeMethods(scene), ...actMethods(scene), ...fileMethods(scene), ...imageMethods(scene) };
}

function lifeMethods(scene: HostScene): Handlers {
  const { runtime, held, contexts, images, nowMs } = scene;
  return {
    open: async ({ spec }, stream) => {
      await endLeftover(scene, spec.id);
      const sandbox = await runtime.open(await localSpec(spec, contexts), stream.over);
      held.opened(spec.id, sandbox, spec);
      if (spec.image !== null) await images.saw(imageKey(spec.image));
      if (stream.over.aborted) {
        await closeNow(runtime, spec.id);
        await held.forget(spec.id);
      }
      return attachedOf(sandbox);
    },
    take: async ({ warm, spec }, stream) => {
      await endLeftover(scene, spec.id);
      const sandbox = await runtime.attach(warm, stream.over);
      await checkAlive(sandbox, stream.over);
      await held.take(warm, spec, nowMs());
      try {
        if (!(await runtime.renew([warm], spec.leaseMs, stream.over)).has(warm)) throw gone(warm, "its lease ended");
        // Its caller left: the name may be asked for again.
        stream.over.throwIfAborted();
      } catch (error) {
        await held.forget(spec.id);
        throw error;
      }
      held.opened(spec.id, sandbox, spec);
      return attachedOf(sandbox);
    },
    // Asked anew, so that one that ended is not told from memory.
    attach: async ({ sandbox }) => {
      held.forgetAttached(sandbox);
      return attachedOf(await held.sandbox(sandbox));
    },
    renew: async ({ sandboxes, leaseMs }, stream) => {
      const inner = new Map(sandboxes.map((id) => [held.inner(id), id]));
      const renewed = await runtime.renew([...inner.keys()], leaseMs, stream.over);
      return { sandboxes: [...renewed].map((id) => inner.get(id) ?? id) };
    },
    close: async ({ sandbox }) => {
      // Not the stream's signal: what is being closed is closed, whoever waits.
      await closeNow(runtime, held.inner(sandbox));
      await held.forget(sandbox);
      return {};
    },
    held: async (_params, stream) => ({ sandboxes: await held.list(stream.over) }),
  };
}

/** A name that is asked for is nobody's: one that has it was taken, and the answer was lost with the connection. */
async function endLeftover({ runtime, held }: HostScene, id: string): Promise<void> {
  if (!held.isTaken(id)) return;
  await closeNow(runtime, held.inner(id));
  await held.forget(id);
}

const closeLimitMs = 60_000;
const closeNow = (runtime: SandboxRuntime, inner: string): Promise<void> =>
  runtime.close(inner, AbortSignal.timeout(closeLimitMs));

function actMethods({ held, memory }: HostScene): Handlers {
  const using = usingOf(held);
  return {
    exec: ({ sandbox, stdin, ...request }, stream) =>
      using(sandbox, (box) =>
        memory.lend(async (take) => {
          const input = stdin ? { stdin: await collect(stream.reader(0), maxFileBytes, take) } : {};
          return await sendResult(stream, await box.exec({ ...request, ...input }, stream.over));
        }),
      ),
    spawn: ({ sandbox, ...request }, stream) => using(sandbox, (box) => serveProcess(box, request, stream)),
    killAll: ({ sandbox, user }, stream) =>
      using(sandbox, async (box) => {
        await box.killAll(stream.over, user);
        return {};
      }),
    snapshot: ({ sandbox }, stream) =>
      using(sandbox, async (box) => {
        if (box.snapshot === undefined) throw refused(`${box.runtime} sandboxes can't be kept as an image`);
        return { image: await box.snapshot(stream.over) };
      }),
    reset: ({ sandbox }, stream) =>
      using(sandbox, async (box) => {
        if (box.reset === undefined) throw refused(`${box.runtime} sandboxes can't be reset`);
        await box.reset(stream.over);
        return {};
      }),
  };
}

function fileMethods({ held, archives, memory }: HostScene): Handlers {
  const using = usingOf(held);
  // What the caller takes at its own pace, however slow that is.
  const give = (stream: Stream, read: () => Promise<Uint8Array>): Promise<Record<string, never>> =>
    memory.lend(async (take) => {
      const content = await read();
      take(content.length);
      await stream.write(1, content);
      return {};
    });
  return {
    readFile: ({ sandbox, path, maxBytes }, stream) =>
      using(sandbox, (box) => give(stream, () => box.readFile(path, { maxBytes }, stream.over))),
    writeFile: ({ sandbox, path, bytes, ...options }, stream) =>
      using(sandbox, (box) =>
        memory.lend(async (take) => {
          const content = await collect(stream.reader(0), bytes, take);
          if (content.length !== bytes) throw refused(`${content.length} of the ${bytes} bytes that were told`);
          await box.writeFile(path, content, options, stream.over);
          return {};
        }),
      ),
    putArchive: ({ sandbox, path, user }, stream) =>
      using(sandbox, async (box) => {
        await archives.whole(stream.reader(0), path, (tar) => box.putArchive(path, tar, { user }, stream.over));
        return {};
      }),
    getArchive: ({ sandbox, path, maxBytes }, stream) =>
      using(sandbox, (box) => give(stream, () => box.getArchive(path, { maxBytes }, stream.over))),
  };
}

/** Of one line of progress, which is for people. */
const maxProgressLength = 2_000;

function imageMethods({ runtime, contexts, images }: HostScene): Handlers {
  return {
    prepare: async ({ image }, stream) => {
      const say = (message: string): void => stream.note(message.slice(0, maxProgressLength));
      await runtime.prepare?.(await localImage(image, contexts), say, stream.over);
      await images.saw(imageKey(image));
      return {};
    },
    hasContext: async ({ hash }) => ({ has: (await contexts.find(hash)) !== null }),
    putContext: async ({ hash, bytes }, stream) => {
      await contexts.put(hash, bytes, stream.reader(0));
      return {};
    },
  };
}

const usingOf =
  (held: HeldSandboxes) =>
  async <T>(id: string, act: (sandbox: Sandbox) => Promise<T>): Promise<T> => {
    try {
      return await act(await held.sandbox(id));
    } catch (error) {
      held.forgetIfGone(id, error);
      throw error;
    }
  };

const attachedOf = (sandbox: Sandbox): Result<"attach"> => ({
  workdir: sandbox.workdir,
  can: (["snapshot", "reset"] as const).filter((feature) => sandbox[feature] !== undefined),
});

/** An image without a shell answers nothing to this, which is no sign of death. */
async function checkAlive(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const { timedOut } = await sandbox.exec({ command: ["sh", "-c", ":"], timeoutMs: livenessMs }, signal);
  if (timedOut) throw gone(sandbox.id, "it runs no commands any more");
}

async function localSpec(spec: WireSpec, contexts: ContextFolders): Promise<SandboxSpec> {
  return {
    ...spec,
    image: spec.image === null ? null : await localImage(spec.image, contexts),
    services: await Promise.all(
      spec.services.map(async (service) => ({ ...service, image: await localImage(service.image, contexts) })),
    ),
    mounts: [],
  };
}

async function localImage(image: WireImage, contexts: ContextFolders) {
  if (image.kind === "name") return image;
  const context = await contexts.find(image.hash);
  if (context === null) throw refused(`build context ${image.hash} has not been sent`);
  return { kind: "build", context, dockerfile: image.dockerfile, timeoutMs: image.timeoutMs } as const;
}

/** Specs of this machine as they go over the wire: build contexts are sent beforehand, named by what is in them; mounts stay. */
import type { ImageSource, SandboxSpec, TaskSandbox } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import { begin, call } from "./call.ts";
import { contextTar, measureContext } from "./context-tar.ts";
import type { Link } from "./link.ts";
import { maxContextBytes } from "./methods.ts";
import { refused } from "./wire-error.ts";
import { type WireImage, WireRecipe, WireSpec } from "./wire-spec.ts";

/** By folder, what hash it has; and the folders to send from. */
export type Contexts = Map<string, { readonly hash: string; readonly bytes: number }>;

const images = (sandbox: TaskSandbox): ImageSource[] =>
  [sandbox.image, ...sandbox.services.map((service) => service.image)].filter((image) => image !== null);

/** Reads each build context once. @throws SandboxFileError */
export async function measureContexts(sources: readonly ImageSource[]): Promise<Contexts> {
  const contexts: Contexts = new Map();
  for (const image of sources) {
    if (image.kind === "name" || contexts.has(image.context)) continue;
    contexts.set(image.context, await measureContext(image.context, maxContextBytes));
  }
  return contexts;
}
export const measureContextsOf = (sandbox: TaskSandbox): Promise<Contexts> => measureContexts(images(sandbox));

/** Sends those that the other side has not got. @throws refused when a folder changed meanwhile */
export async function sendContexts(link: Link, contexts: Contexts, signal: AbortSignal): Promise<void> {
  for (const [folder, { hash, bytes }] of contexts) {
    if ((await call(link, "hasContext", { hash }, signal)).has) continue;
    await sendContext(link, hash, bytes, contextTar(folder, maxContextBytes), signal);
  }
}

export async function sendContext(
  link: Link,
  hash: string,
  bytes: number,
  tar: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const { stream, result } = begin(link, "putContext", { hash, bytes }, signal);
  const sent = (async () => {
    for await (const chunk of tar) await stream.write(0, chunk);
    stream.end(0);
  })();
  // Its own failure first: what the other side says then is that it got no end.
  await Promise.race([sent.then(() => result), result]).finally(() => {
    if (!stream.over.aborted) stream.cancel(refused("the context was not sent"));
  });
}

export function wireImage(image: ImageSource, contexts: Contexts): WireImage {
  if (image.kind === "name") return { kind: "name", name: image.name };
  const context = contexts.get(image.context);
  if (context === undefined) throw new Error(`build context ${image.context} was not measured`);
  return { kind: "context", hash: context.hash, dockerfile: image.dockerfile, timeoutMs: image.timeoutMs };
}

/** @throws refused for what can't travel or is past the limits */
export function wireSpec(spec: SandboxSpec, contexts: Contexts): WireSpec {
  const { mounts, ...rest } = spec;
  if (mounts.length > 0) throw refused("remote sandboxes can't mount folders of this machine");
  return parsed(WireSpec, { ...rest, ...wireParts(spec, contexts) });
}

/** @throws refused for what can't travel or is past the limits */
export function wireRecipe(sandbox: TaskSandbox, maxLifeMs: number, contexts: Contexts): WireRecipe {
  const { resources, network, user, workdir, environment } = sandbox;
  return parsed(WireRecipe, {
    ...{ resources, network, user, workdir, environment, maxLifeMs },
    ...wireParts(sandbox, contexts),
  });
}

const wireParts = (sandbox: TaskSandbox, contexts: Contexts) => ({
  image: sandbox.image === null ? null : wireImage(sandbox.image, contexts),
  services: sandbox.services.map((service) => ({ ...service, image: wireImage(service.image, contexts) })),
});

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (!result.success) throw refused(`a sandbox like this can't be asked for: ${z.prettifyError(result.error)}`);
  return result.data;
}

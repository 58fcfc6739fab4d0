/**
 * Images of sandboxes: found, pulled or built. Each is pulled or built once, however many ask at a time; who stops waiting does
 * not stop it for the others.
 */
import { Readable } from "node:stream";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { ImageSource } from "@rolldeck/contracts/ports/sandbox";
import type Docker from "dockerode";
import { imageTrouble } from "../shared/image-trouble.ts";
import { unlessAborted } from "../shared/waiting.ts";
import { ImageAnswer, ProgressAnswer } from "./answers.ts";
import { readBuildContext } from "./build-context.ts";
import type { ImageFacts } from "./container-options.ts";
import { answerMs, asked, daemonTrouble, heard, refused, statusOf } from "./daemon-trouble.ts";
import { buildRepository, imageLabels, type KeptImages } from "./kept-images.ts";

/** A pull of which nothing is heard for so long is given up. */
const silenceMs = 300_000;
const maxLine = 1024 * 1024;
const keptLog = 4_000;

type Progress = (message: string) => void;

export interface ImageSettings {
  readonly deployment: string;
  /** Network of build steps. */
  readonly buildNetwork: string;
  readonly kept: Pick<KeptImages, "touch">;
}

const part = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*";
const reference = new RegExp(
  `^(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?${part}(?:/${part})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$`,
);

/** A name becomes part of an address of the daemon's: one that is none could lead elsewhere. */
const isReference = (name: string): boolean =>
  name.length <= 400 && (reference.test(name) || /^sha256:[a-f0-9]{64}$/.test(name));

export class DockerImages {
  readonly #docker: Docker;
  readonly #settings: ImageSettings;
  readonly #making = new Map<string, { readonly made: Promise<void>; readonly hear: Set<Progress> }>();

  constructor(docker: Docker, settings: ImageSettings) {
    this.#docker = docker;
    this.#settings = settings;
  }

  /** @throws BoundaryError("sandbox", "no_image") that says what to do, or `unavailable` */
  async ensure(image: ImageSource, onProgress: Progress, signal: AbortSignal): Promise<ImageFacts> {
    if (image.kind === "name") {
      if (!isReference(image.name)) throw refused(`${JSON.stringify(image.name.slice(0, 200))} is no name of an image`);
      return this.#present(image.name, () => this.#pull(image.name), onProgress, signal);
    }
    const context = await unlessAborted(readBuildContext(image.context, image.dockerfile), signal);
    const name = `${buildRepository}:${context.hash.slice(0, 40)}`;
    const build = (say: Progress): Promise<void> => this.#build(name, Readable.from(context.tar()), image, say);
    return this.#present(name, () => build, onProgress, signal);
  }

  async #present(
    name: string,
    how: () => (say: Progress) => Promise<void>,
    onProgress: Progress,
    signal: AbortSignal,
  ): Promise<ImageFacts> {
    const found = await unlessAborted(this.#used(name), signal);
    if (found !== null) return found;
    await this.#once(name, how(), onProgress, signal);
    const made = await unlessAborted(this.#find(name), signal);
    if (made !== null) return made;
    throw new BoundaryError("sandbox", "no_image", `image ${name} was made and is not there`);
  }

  /** Its lease is renewed before it is used: the sweep of another process sees that. */
  async #used(name: string): Promise<ImageFacts | null> {
    const found = await this.#find(name);
    if (found !== null) await this.#settings.kept.touch(name);
    return found;
  }

  async #find(name: string): Promise<ImageFacts | null> {
    let answer: unknown;
    try {
      answer = await heard(`looking for image ${name}`, this.#docker.getImage(name).inspect());
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw daemonTrouble(error, `looking for image ${name}`);
    }
    const { Id, Config } = ImageAnswer.parse(answer);
    return { id: Id, user: rootless(Config?.User ?? ""), workdir: Config?.WorkingDir ?? "" };
  }

  async #once(
    name: string,
    make: (say: Progress) => Promise<void>,
    hear: Progress,
    signal: AbortSignal,
  ): Promise<void> {
    let work = this.#making.get(name);
    if (work === undefined) {
      const listeners = new Set<Progress>();
      const say: Progress = (message) => {
        for (const listener of listeners) listener(message);
      };
      // Whoever asks first hears of its beginning, too.
      const begun = Promise.resolve().then(() => make(say));
      work = { made: begun.finally(() => this.#making.delete(name)), hear: listeners };
      this.#making.set(name, work);
    }
    work.hear.add(hear);
    try {
      await unlessAborted(work.made, signal);
    } finally {
      work.hear.delete(hear);
    }
  }

  #pull(name: string): (say: Progress) => Promise<void> {
    return async (say) => {
      say(`pulling ${name}`);
      const advice = `correct its name in the task, load it on the machine (docker load), or make it reachable (docker pull ${name})`;
      let stream: NodeJS.ReadableStream;
      try {
        stream = await heard(`pulling ${name}`, this.#docker.pull(name), { limitMs: silenceMs });
      } catch (error) {
        const trouble = daemonTrouble(error, `pulling ${name}`);
        if (statusOf(error) === null) throw trouble;
        throw imageTrouble(name, `it is not here, and ${trouble.message}`, advice, error);
      }
      const end = await readProgress(stream, silenceMs, say);
      if (end !== null) throw imageTrouble(name, `it is not here, and pulling it failed: ${end}`, advice);
    };
  }

  async #build(
    name: string,
    tar: Readable,
    image: Extract<ImageSource, { kind: "build" }>,
    say: Progress,
  ): Promise<void> {
    say(`building ${name} from ${image.context}`);
    let log = "";
    const hear: Progress = (message) => {
      log = `${log}${message}\n`.slice(-keptLog);
      say(message);
    };
    const stopped = AbortSignal.timeout(image.timeoutMs);
    try {
      const stream = await asked(
        `building ${name}`,
        this.#docker.buildImage(tar, {
          t: name,
          dockerfile: image.dockerfile,
          networkmode: this.#settings.buildNetwork,
          rm: true,
          forcerm: true,
          labels: imageLabels(this.#settings.deployment),
          abortSignal: stopped,
        }),
        { limitMs: image.timeoutMs + answerMs },
      );
      const end = await readProgress(stream, image.timeoutMs, hear, stopped);
      if (end !== null) throw noImage(`the image of ${image.context} does not build: ${end}\n${log}`.trim());
    } catch (error) {
      if (!stopped.aborted) throw error;
      throw noImage(`the image of ${image.context} was not built in ${image.timeoutMs / 1000} s\n${log}`.trim(), error);
    } finally {
      tar.destroy();
    }
  }
}

/** How an image says root is of no interest here. */
const rootless = (user: string): string => (/^(root|0)(:(root|0))?$/.test(user) ? "" : user);

const noImage = (message: string, cause?: unknown): BoundaryError =>
  new BoundaryError("sandbox", "no_image", message, { cause });

/** Reads lines of JSON to their end; null = it went well, else what went wrong. */
async function readProgress(
  stream: NodeJS.ReadableStream & { destroy?(error?: Error): unknown },
  silenceLimitMs: number,
  say: Progress,
  stopped?: AbortSignal,
): Promise<string | null> {
  let trouble: string | null = null;
  let line = "";
  const stop = (): void => void stream.destroy?.(new Error("no progress"));
  let timer = setTimeout(stop, silenceLimitMs);
  stopped?.addEventListener("abort", stop, { once: true });
  try {
    for await (const chunk of stream) {
      clearTimeout(timer);
      timer = setTimeout(stop, silenceLimitMs);
      line += chunk.toString();
      for (let end = line.indexOf("\n"); end >= 0; end = line.indexOf("\n")) {
        trouble = hearLine(line.slice(0, end), say) ?? trouble;
        line = line.slice(end + 1);
      }
      if (line.length > maxLine) line = "";
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
    stopped?.removeEventListener("abort", stop);
  }
  return hearLine(line, say) ?? trouble;
}

/** What went wrong, where the line says so. */
function hearLine(line: string, say: Progress): string | null {
  if (line.trim() === "") return null;
  let said: unknown;
  try {
    said = JSON.parse(line);
  } catch {
    return null;
  }
  const { error, stream, status, id } = ProgressAnswer.parse(said);
  if (error !== undefined) return error.trim();
  const message = stream ?? (status === undefined ? "" : id === undefined ? status : `${id}: ${status}`);
  if (message.trim() !== "") say(message.trim());
  return null;
}

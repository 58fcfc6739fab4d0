/**
 * What a GPU worker has stored, to be read and never changed: whether a checkpoint is whole, and its Hugging Face folder or its
 * PEFT adapter as a tar stream. It opens no session and no model.
 */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { ExportFormat } from "@rolldeck/contracts/api/checkpoints";
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { HttpAnswer } from "../http/kept-alive-server.ts";
import { openServer, type ServerAddress } from "../http/open-server.ts";
import { refusalOf } from "./worker-refusal.ts";

export interface ExportedFolder {
  /** Size of the tar. */
  readonly bytes: number;
  /** The worker's digest of it; the stream fails where what came is something else. */
  readonly sha256: string;
  /** To be read whole or destroyed. */
  readonly body: Readable;
}

/** How long a worker may take to begin an answer: it reads all files first. */
const answerWithinMs = 10 * 60_000;

export class StoredCheckpoints {
  readonly #server: ReturnType<typeof openServer>;

  constructor({ url, apiKey }: { readonly url: ServerAddress; readonly apiKey: string }) {
    this.#server = openServer(url, { headers: { "x-api-key": apiKey }, maxConnections: 16 });
  }

  /**
   * @param path `tinker://model/kind/name`
   * @throws BoundaryError model-server: `unknown_model` where there is none, `conflict` where a file is not what was saved,
   * `unreachable`
   */
  async verify(path: string, signal?: AbortSignal): Promise<void> {
    const answer = await this.#get(path, "verify", signal);
    await answer.body.text();
  }

  /** @throws BoundaryError as `verify`; `bad_input` where a checkpoint of all weights is asked for its adapter */
  async export(path: string, format: ExportFormat, signal?: AbortSignal): Promise<ExportedFolder> {
    const { body, header } = await this.#get(path, `export?format=${format}`, signal);
    // Whoever reads it hears of what fails; nobody else has to.
    body.on("error", () => undefined);
    const bytes = Number(header("content-length"));
    const sha256 = header("x-content-sha256") ?? "";
    if (!Number.isSafeInteger(bytes) || bytes <= 0 || !/^[0-9a-f]{64}$/u.test(sha256)) {
      body.destroy();
      throw new BoundaryError("model-server", "bad_answer", "the export says neither its size nor its digest");
    }
    const whole = Readable.from(checked(body, bytes, sha256), { objectMode: false });
    whole.once("close", () => body.destroy());
    return { bytes, sha256, body: whole };
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  async #get(
    path: string,
    what: "verify" | `export?format=${ExportFormat}`,
    signal: AbortSignal | undefined,
  ): Promise<HttpAnswer> {
    const place = path
      .replace(/^tinker:\/\//u, "")
      .split("/")
      .map(encodeURIComponent)
      .join("/");
    const request = { method: "GET", path: `/ext/v1/checkpoints/${place}/${what}`, signal } as const;
    const answer = await this.#server.send({ ...request, headersWithinMs: answerWithinMs }).catch((cause: unknown) => {
      if (signal?.aborted) throw signal.reason;
      const words = cause instanceof Error ? cause.message : String(cause);
      throw new BoundaryError("model-server", "unreachable", `the GPU worker does not answer: ${words}`, {
        cause,
        retryable: true,
      });
    });
    if (answer.status === 200) return answer;
    throw refusalOf(answer.status, await answer.body.text());
  }
}

/** Held back until the digest is known: a tar that lacks its end is no whole tar. */
const heldBack = 512;

async function* checked(body: Readable, bytes: number, sha256: string): AsyncGenerator<Buffer, void, void> {
  const hash = createHash("sha256");
  let seen = 0;
  let held = Buffer.alloc(0);
  for await (const part of body) {
    const chunk: Buffer = Buffer.from(part);
    hash.update(chunk);
    seen += chunk.length;
    const all = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    const ready = Math.max(0, all.length - heldBack);
    if (ready > 0) yield all.subarray(0, ready);
    held = Buffer.from(all.subarray(ready));
  }
  if (seen !== bytes || hash.digest("hex") !== sha256)
    throw new BoundaryError("model-server", "bad_answer", "the export that came is not the one that was sent");
  yield held;
}

/**
 * The `remote` runtime: sandboxes on the hosts of a gateway. Whatever is asked goes over one connection that is made again when it
 * ended. Errors are those of the host's runtime, and `unavailable` while gateway or host are away.
 */
import { createHash } from "node:crypto";
import type {
  ExpectedSandboxes,
  ImageSource,
  Sandbox,
  SandboxFact,
  SandboxRuntime,
  SandboxSpec,
  TaskSandbox,
} from "@rolldeck/contracts/ports/sandbox";
import { begin } from "./call.ts";
import type { GatewayAddress } from "./dial.ts";
import type { GatewayStatus } from "./methods.ts";
import { remoteSandbox } from "./remote-sandbox.ts";
import { SharedLink } from "./shared-link.ts";
import { measureContexts, measureContextsOf, sendContexts, wireImage, wireRecipe, wireSpec } from "./wire-contexts.ts";
import { unavailable } from "./wire-error.ts";

/** How long a sandbox that may have been opened for nobody is looked for; its lease ends it in any case. */
const letGoMs = 30_000;
const renewAtOnce = 10_000;

export interface RemoteOptions {
  /** Asked at each connect: certificates may have been renewed. */
  readonly address: () => Promise<GatewayAddress>;
  /** Others of the gateway's clients see nothing of this one's in their lists. */
  readonly deployment: string;
  readonly onTrouble: (message: string, error: unknown) => void;
}

export class RemoteRuntime implements SandboxRuntime {
  readonly name = "remote";
  readonly isolation = "that of the hosts behind the sandbox server";
  readonly limits = ["folders of this machine can't be mounted"];
  readonly #options: RemoteOptions;
  readonly #link: SharedLink;

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.#link = new SharedLink(options.address, clientName(options.deployment));
  }

  async ailment(signal: AbortSignal): Promise<string | null> {
    try {
      const { hosts } = await this.status(signal);
      if (hosts.some((host) => host.state === "here" && !host.draining)) return null;
      return "no host has joined the sandbox server: run `rolldeck sandbox-host` on one";
    } catch (error) {
      signal.throwIfAborted();
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** What the gateway has and does. */
  status(signal: AbortSignal): Promise<GatewayStatus> {
    return this.#link.callAgain("status", {}, signal);
  }

  /** No new sandboxes on the host of this name, or new ones again. @throws BoundaryError("sandbox", "refused") for an unknown one */
  async drain(host: string, draining: boolean, signal: AbortSignal): Promise<void> {
    await this.#link.callAgain("drain", { host, draining }, signal);
  }

  async prepare(image: ImageSource, onProgress: (message: string) => void, signal: AbortSignal): Promise<void> {
    const contexts = await measureContexts([image]);
    await this.#link.again(async (link) => {
      await sendContexts(link, contexts, signal);
      const { stream, result } = begin(link, "prepare", { image: wireImage(image, contexts) }, signal);
      stream.onNote((body) => {
        if (typeof body === "string") onProgress(body);
      });
      await result;
    }, signal);
  }

  async expect(sandbox: TaskSandbox, expected: ExpectedSandboxes, signal: AbortSignal): Promise<void> {
    const contexts = await measureContextsOf(sandbox);
    const { count, maxLifeMs, forMs } = expected;
    await this.#link.again((link) => sendContexts(link, contexts, signal), signal);
    await this.#link.callAgain("expect", { recipe: wireRecipe(sandbox, maxLifeMs, contexts), count, forMs }, signal);
  }

  async open(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const contexts = await measureContextsOf(spec);
    const wire = wireSpec(spec, contexts);
    if (contexts.size > 0) await this.#link.again((link) => sendContexts(link, contexts, signal), signal);
    const { stream, result } = await this.#link.begin("open", { spec: wire }, signal);
    try {
      return remoteSandbox(this.#link, spec.id, await result);
    } catch (error) {
      // Where the gateway says so it leaves nothing. What was given up, or cut off, may have been opened all the same.
      if (!stream.wasRefused) this.#letGo(spec.id);
      throw error;
    }
  }

  async attach(id: string, signal: AbortSignal): Promise<Sandbox> {
    return remoteSandbox(this.#link, id, await this.#link.callAgain("attach", { sandbox: id }, signal));
  }

  async renew(ids: readonly string[], leaseMs: number, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const renewed = new Set<string>();
    for (let at = 0; at < ids.length; at += renewAtOnce) {
      const sandboxes = ids.slice(at, at + renewAtOnce);
      const answer = await this.#link.callAgain("renew", { sandboxes, leaseMs }, signal);
      for (const id of answer.sandboxes) renewed.add(id);
    }
    return renewed;
  }

  async close(id: string, signal: AbortSignal): Promise<void> {
    await this.#link.callAgain("close", { sandbox: id }, signal);
  }

  /** All of them, or none. @throws BoundaryError("sandbox", "unavailable") while hosts may have more of them */
  async list(signal: AbortSignal): Promise<readonly SandboxFact[]> {
    const { sandboxes, complete } = await this.#link.callAgain("list", {}, signal);
    // Taken for all of them, part of them would say of the others that they are gone.
    if (!complete) throw unavailable("the sandbox server does not know yet what all of its hosts have");
    return sandboxes;
  }

  disconnect(): Promise<void> {
    return this.#link.close();
  }

  #letGo(id: string): void {
    this.close(id, AbortSignal.timeout(letGoMs)).catch((error: unknown) =>
      this.#options.onTrouble(`sandbox ${id} may have been opened for nobody; its lease ends it`, error),
    );
  }
}

/** Of any length outside; a label's length inside. */
export const clientName = (deployment: string): string =>
  createHash("sha256").update(deployment).digest("hex").slice(0, 32);

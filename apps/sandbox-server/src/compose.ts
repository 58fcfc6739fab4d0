/** Puts the sandbox server together from its settings. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import path from "node:path";
import { removeParts } from "@rolldeck/sandbox/remote/context-tar";
import pino from "pino";
import { z } from "zod";
import { Contexts } from "./contexts.ts";
import { Gateway } from "./gateway.ts";
import { createHttpServer } from "./http-server.ts";
import { KnownHosts } from "./known-hosts.ts";
import type { ServerSettings } from "./settings.ts";
import { loadTokens } from "./tokens.ts";

const maxContextsBytes = 20 * 1024 ** 3;

export interface SandboxServer {
  readonly server: Server;
  readonly gateway: Gateway;
  readonly say: (message: string) => void;
}

/** Not listening yet. @throws InputError */
export async function compose(settings: ServerSettings): Promise<SandboxServer> {
  const log = pino({ name: "rolldeck-sandbox-server" });
  const say = (message: string): void => log.info(message);
  const onTrouble = (message: string, error: unknown): void => log.warn({ err: error }, message);
  await mkdir(settings.stateFolder, { recursive: true, mode: 0o700 });
  const contexts = path.join(settings.stateFolder, "contexts");
  await removeParts(contexts);
  const { tokens, made } = loadTokens(settings.tokenFile);
  if (made) say(`made ${settings.tokenFile} with a client and a host token`);
  const drainingFile = path.join(settings.stateFolder, "draining.json");
  const gateway = new Gateway({
    ...settings,
    // Without tokens there was no host.
    knownHosts: await KnownHosts.load(path.join(settings.stateFolder, "hosts.json"), made),
    contexts: new Contexts(contexts, maxContextsBytes),
    draining: await readDraining(drainingFile),
    saveDraining: async (names) => {
      await writeFile(`${drainingFile}.part`, JSON.stringify(names), { mode: 0o600 });
      await rename(`${drainingFile}.part`, drainingFile);
    },
    nowMs: () => performance.now(),
    onTrouble,
  });
  const tls =
    settings.tls === null
      ? null
      : { cert: await readFile(settings.tls.certFile, "utf8"), key: await readFile(settings.tls.keyFile, "utf8") };
  return { server: createHttpServer({ gateway, tokens, tls, onSaid: say, onTrouble }), gateway, say };
}

async function readDraining(file: string): Promise<ReadonlySet<string>> {
  try {
    return new Set(z.array(z.string()).parse(JSON.parse(await readFile(file, "utf8"))));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return new Set();
    throw new Error(`${file} can't be read`, { cause: error });
  }
}

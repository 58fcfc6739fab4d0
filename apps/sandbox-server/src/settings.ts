/** The command line of the sandbox server. */
import { parseArgs } from "node:util";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";

const port = z.coerce.number().int().min(0).max(65_535);
const Flags = z.strictObject({
  port: port.default(4480),
  host: z.string().min(1).default("127.0.0.1"),
  "token-file": z.string().min(1),
  "tls-cert": z.string().optional(),
  "tls-key": z.string().optional(),
  insecure: z.boolean().default(false),
  "state-folder": z.string().min(1),
  "starts-per-second": z.coerce.number().positive().max(10_000).default(20),
  "starts-per-host": z.coerce.number().positive().max(10_000).default(8),
  "max-queued": z.coerce.number().int().min(1).max(1_000_000).default(10_000),
  "max-ready": z.coerce.number().int().min(0).max(4_096).default(8),
  "lost-after": z.coerce.number().positive().max(86_400).default(30),
});

export interface ServerSettings {
  readonly port: number;
  readonly host: string;
  readonly tokenFile: string;
  readonly tls: { readonly certFile: string; readonly keyFile: string } | null;
  readonly stateFolder: string;
  readonly startsPerSecond: number;
  readonly startsPerSecondOfHost: number;
  readonly maxQueued: number;
  readonly maxReady: number;
  readonly lostAfterMs: number;
}

const loopback = new Set(["127.0.0.1", "::1", "localhost"]);

/** @throws InputError naming each flag */
export function parseServerSettings(argv: readonly string[]): ServerSettings {
  const names = Object.keys(Flags.shape);
  const options = Object.fromEntries(
    names.map((name) => [name, { type: name === "insecure" ? ("boolean" as const) : ("string" as const) }]),
  );
  let values: unknown;
  try {
    ({ values } = parseArgs({ args: [...argv], options, strict: true }));
  } catch (error) {
    throw new InputError([{ path: "", message: error instanceof Error ? error.message : String(error) }]);
  }
  const parsed = Flags.safeParse(values);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => ({ path: `--${path.join(".")}`, message }));
    throw new InputError(issues);
  }
  const flags = parsed.data;
  const tls = tlsOf(flags["tls-cert"], flags["tls-key"]);
  if (tls === null && !loopback.has(flags.host) && !flags.insecure) {
    const message = `${flags.host} is reached from outside: give --tls-cert and --tls-key, or --insecure behind a proxy that has TLS`;
    throw new InputError([{ path: "--host", message }]);
  }
  return {
    ...{ port: flags.port, host: flags.host, tokenFile: flags["token-file"], tls },
    stateFolder: flags["state-folder"],
    startsPerSecond: flags["starts-per-second"],
    startsPerSecondOfHost: flags["starts-per-host"],
    maxQueued: flags["max-queued"],
    maxReady: flags["max-ready"],
    lostAfterMs: flags["lost-after"] * 1000,
  };
}

function tlsOf(certFile: string | undefined, keyFile: string | undefined): ServerSettings["tls"] {
  if (certFile === undefined && keyFile === undefined) return null;
  if (certFile === undefined || keyFile === undefined) {
    throw new InputError([{ path: "--tls-cert", message: "--tls-cert and --tls-key belong together" }]);
  }
  return { certFile, keyFile };
}

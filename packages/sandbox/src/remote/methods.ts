/**
 * The methods of the sandbox protocol: what each takes and answers. Bytes go over a stream's channels: 0 in, 1 and 2 out. The same
 * table for both legs; `side` says who serves a method.
 */
import { z } from "zod";
import { Labels } from "./frames.ts";
import { CommandLine, ContentHash, Environment, SandboxId, WireImage, WireRecipe, WireSpec } from "./wire-spec.ts";

const dayMs = 86_400_000;
const mebibyte = 1024 * 1024;
/** Of a file that is read or written whole, and of kept output. */
export const maxFileBytes = 512 * mebibyte;
const maxOutputBytes = 64 * mebibyte;
/** Of a build context's tar. */
export const maxContextBytes = 1024 * mebibyte;

/** Which paths are good is the runtime's to say. */
const path = z.string().max(65_536);
const user = z.string().min(1).max(100).optional();
const nothing = z.strictObject({});
const sandbox = SandboxId;

const Command = z.strictObject({
  sandbox,
  command: CommandLine,
  cwd: path.optional(),
  environment: Environment.optional(),
  user,
});

const KeptOutput = z.strictObject({
  headBytes: z.int().min(0),
  gapBytes: z.number().min(0),
  tailBytes: z.int().min(0),
  bytes: z.number().min(0),
});

export const ExecAnswer = z.strictObject({
  exitCode: z.int().nullable(),
  timedOut: z.boolean(),
  flooded: z.boolean(),
  outOfMemory: z.boolean(),
  stdout: KeptOutput,
  stderr: KeptOutput,
  durationMs: z.number().min(0),
});

const Attached = z.strictObject({
  workdir: z.string(),
  /** What the runtime can beyond the port's must. */
  can: z.array(z.enum(["snapshot", "reset"])),
});

export const WireFact = z.strictObject({
  id: SandboxId,
  labels: Labels,
  state: z.enum(["running", "ended"]),
  createdAtMs: z.number(),
});
export type WireFact = z.infer<typeof WireFact>;

/** A host's: what the gateway needs to know again after a restart. */
const HeldFact = WireFact.extend({
  /** Opened ahead and nobody's yet. */
  warm: z.boolean(),
  image: z.string().nullable(),
  cpus: z.number().nullable(),
  memoryMb: z.number().nullable(),
});
export type HeldFact = z.infer<typeof HeldFact>;

const HostStatus = z.strictObject({
  hostId: z.string(),
  name: z.string(),
  /** `joining`: connected, and not yet given anything. */
  state: z.enum(["here", "joining", "away", "lost"]),
  draining: z.boolean(),
  runtime: z.string(),
  isolation: z.string(),
  limits: z.array(z.string()),
  labels: Labels,
  open: z.int(),
  opening: z.int(),
  warm: z.int(),
  maxSandboxes: z.int(),
  images: z.int(),
});
export const GatewayStatus = z.strictObject({
  version: z.int(),
  uptimeMs: z.number(),
  hosts: z.array(HostStatus),
  queued: z.int(),
  sandboxes: z.int(),
  /** By run label, most first: what was used, in reserved cores and memory. */
  usage: z.array(
    z.strictObject({
      run: z.string(),
      sandboxSeconds: z.number(),
      reservedCpuSeconds: z.number(),
      reservedMemoryMbSeconds: z.number(),
    }),
  ),
});
export type GatewayStatus = z.infer<typeof GatewayStatus>;

/** Served by the gateway and by hosts alike. */
const methods = {
  open: { params: z.strictObject({ spec: WireSpec }), result: Attached },
  attach: { params: z.strictObject({ sandbox }), result: Attached },
  /** Channel 0: stdin, ended by the caller. Channels 1, 2: head then tail of what was kept. */
  exec: {
    params: Command.extend({
      stdin: z.boolean(),
      timeoutMs: z
        .number()
        .min(1)
        .max(7 * dayMs),
      maxOutputBytes: z.int().min(0).max(maxOutputBytes).optional(),
      maxReadBytes: z.number().min(0).optional(),
    }),
    result: ExecAnswer,
  },
  /** Notes: to the caller `started` and `exited`; from it `resize`. Channels as they are named. */
  spawn: {
    params: Command.extend({
      tty: z.strictObject({ columns: z.int().min(1).max(10_000), rows: z.int().min(1).max(10_000) }).optional(),
    }),
    result: nothing,
  },
  killAll: { params: z.strictObject({ sandbox, user }), result: nothing },
  readFile: { params: z.strictObject({ sandbox, path, maxBytes: z.int().min(0).max(maxFileBytes) }), result: nothing },
  writeFile: {
    params: z.strictObject({
      sandbox,
      path,
      bytes: z.int().min(0).max(maxFileBytes),
      mode: z.int().min(0).max(0o7777).optional(),
      user,
    }),
    result: nothing,
  },
  putArchive: { params: z.strictObject({ sandbox, path, user }), result: nothing },
  getArchive: {
    params: z.strictObject({ sandbox, path, maxBytes: z.int().min(0).max(maxFileBytes) }),
    result: nothing,
  },
  snapshot: { params: z.strictObject({ sandbox }), result: z.strictObject({ image: z.string().max(500) }) },
  reset: { params: z.strictObject({ sandbox }), result: nothing },
  renew: {
    params: z.strictObject({
      sandboxes: z.array(SandboxId).max(10_000),
      leaseMs: z
        .number()
        .min(1000)
        .max(7 * dayMs),
    }),
    result: z.strictObject({ sandboxes: z.array(SandboxId) }),
  },
  close: { params: z.strictObject({ sandbox }), result: nothing },
  /** Notes: progress in words. */
  prepare: { params: z.strictObject({ image: WireImage }), result: nothing },
  hasContext: { params: z.strictObject({ hash: ContentHash }), result: z.strictObject({ has: z.boolean() }) },
  /** Channel 0: the tar, whose SHA-256 is the hash. */
  putContext: {
    params: z.strictObject({ hash: ContentHash, bytes: z.int().min(0).max(maxContextBytes) }),
    result: nothing,
  },
  /** Gateway only. */
  list: {
    params: nothing,
    /** Not complete: of one that is not among them nobody knows yet whether it is there. */
    result: z.strictObject({ sandboxes: z.array(WireFact), complete: z.boolean() }),
  },
  status: { params: nothing, result: GatewayStatus },
  /** Gateway only: so many of this recipe are wanted soon. */
  expect: {
    params: z.strictObject({
      recipe: WireRecipe,
      count: z.int().min(0).max(4096),
      forMs: z.number().min(0).max(dayMs),
    }),
    result: nothing,
  },
  drain: { params: z.strictObject({ host: z.string().max(100), draining: z.boolean() }), result: nothing },
  /** Hosts only. */
  held: { params: nothing, result: z.strictObject({ sandboxes: z.array(HeldFact) }) },
  /** Hosts only: a warm one becomes the caller's, if it lives. */
  take: { params: z.strictObject({ warm: SandboxId, spec: WireSpec }), result: Attached },
} as const satisfies Record<string, { params: z.ZodType; result: z.ZodType }>;

export type Method = keyof typeof methods;
export type Params<M extends Method> = z.output<(typeof methods)[M]["params"]>;
export type Result<M extends Method> = z.output<(typeof methods)[M]["result"]>;
/** The table with its types by name, for code that handles any method. */
export const methodTypes: {
  readonly [M in Method]: { readonly params: z.ZodType<Params<M>>; readonly result: z.ZodType<Result<M>> };
} = methods;
/** Calls without which nothing would end, or be seen to: a connection that is full of others still takes them. */
const control: ReadonlySet<string> = new Set<Method>(["renew", "close", "held", "list", "status"]);
export const isControl = (name: string): boolean => control.has(name);
export const isMethod = (name: string): name is Method => Object.hasOwn(methods, name);

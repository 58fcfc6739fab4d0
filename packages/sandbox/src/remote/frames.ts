/**
 * Frames of the sandbox protocol, version 1: one binary WebSocket message each, made of a length (4 bytes, big end first), a JSON
 * header of that length, and a payload that only `data` frames have. The same on both legs: client to gateway, gateway to host.
 * Invariant: what `decodeFrame` returns has been checked; anything else is a ProtocolError, which ends the connection.
 */
import { jsonDepth, maxJsonDepth } from "@rolldeck/contracts/json-depth";
import { z } from "zod";

export const protocolVersion = 1;
/** Name of the WebSocket subprotocol. */
export const subprotocol = "rolldeck-sandbox.1";

/** Bytes of one message at most; the biggest are specs and lists. */
export const maxFrameBytes = 4 * 1024 * 1024;
/** Payload bytes of one frame at most. */
export const maxPayloadBytes = 64 * 1024;
/** Bytes of the header of one note at most: words beside the bytes, which may have to be kept until someone asks for them. */
export const maxNoteBytes = 16 * 1024;
/** What may be sent on each channel of a stream before the other side has granted anything. */
export const initialCreditBytes = 64 * 1024;

const streamId = z
  .int()
  .min(1)
  .max(2 ** 31 - 1);
/** 0 = what goes in (stdin, files), 1 = what comes out (stdout, files), 2 = stderr. */
const channel = z.int().min(0).max(2);
const label = z.string().max(200);
export const Labels = z.record(z.string().regex(/^[a-z0-9][a-z0-9._-]{0,39}$/), z.string().max(60));

export const WireError = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("sandbox"),
    code: z.string().regex(/^[a-z_]{1,40}$/),
    message: z.string(),
    retryable: z.boolean(),
    retryAfterMs: z.int().min(0).optional(),
  }),
  z.strictObject({ kind: z.literal("file"), code: z.string().max(40), path: z.string(), message: z.string() }),
]);
export type WireError = z.infer<typeof WireError>;

/** A host says who it is; the gateway then asks for what it has. */
export const HostHello = z.strictObject({
  k: z.literal("host-hello"),
  version: z.int(),
  /** Kept by the host over restarts. */
  hostId: z.string().regex(/^[a-z0-9]{8,40}$/),
  /** For people; two hosts of one name are refused. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/),
  /** Differs with each start of the process. */
  bootId: label,
  runtime: label,
  isolation: z.string().max(500),
  limits: z.array(z.string().max(500)).max(50),
  maxSandboxes: z.int().min(1).max(100_000),
  memoryMb: z.int().min(1),
  labels: Labels,
  /** Keys of images that are ready there. */
  images: z.array(z.string().max(600)).max(2000),
});
export type HostHello = z.infer<typeof HostHello>;

export const Header = z.discriminatedUnion("k", [
  HostHello,
  z.strictObject({ k: z.literal("client-hello"), version: z.int(), deployment: label }),
  z.strictObject({ k: z.literal("welcome"), version: z.int(), gateway: label }),
  /** Said before a connection is closed on purpose. */
  z.strictObject({ k: z.literal("bye"), reason: z.string().max(1000) }),
  z.strictObject({ k: z.literal("open"), s: streamId, method: z.string().max(40), params: z.unknown() }),
  z.strictObject({ k: z.literal("data"), s: streamId, c: channel }),
  z.strictObject({
    k: z.literal("credit"),
    s: streamId,
    c: channel,
    n: z
      .int()
      .min(1)
      .max(2 ** 31 - 1),
  }),
  z.strictObject({ k: z.literal("end"), s: streamId, c: channel }),
  z.strictObject({ k: z.literal("note"), s: streamId, body: z.unknown() }),
  z.strictObject({ k: z.literal("result"), s: streamId, value: z.unknown() }),
  z.strictObject({ k: z.literal("error"), s: streamId, error: WireError }),
  z.strictObject({ k: z.literal("cancel"), s: streamId }),
]);
export type Header = z.infer<typeof Header>;
export type StreamHeader = Extract<Header, { s: number }>;

export interface Frame {
  readonly header: Header;
  /** Empty on all but `data`. */
  readonly payload: Uint8Array;
}

/** The other side does not speak this protocol: the connection ends. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

const nothing = new Uint8Array(0);

/** @throws ProtocolError for one that is larger than the other side takes */
export function encodeFrame(header: Header, payload: Uint8Array = nothing): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  if (4 + json.length + payload.length > maxFrameBytes) {
    throw new ProtocolError(`a ${header.k} frame of ${json.length + payload.length} bytes is too large`);
  }
  if (header.k === "note" && json.length > maxNoteBytes) throw new ProtocolError(`a note of ${json.length} bytes`);
  const message = Buffer.allocUnsafe(4 + json.length + payload.length);
  message.writeUInt32BE(json.length, 0);
  json.copy(message, 4);
  message.set(payload, 4 + json.length);
  return message;
}

/** The payload is a view of the message. @throws ProtocolError */
export function decodeFrame(message: Uint8Array): Frame {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  if (bytes.length < 4 || bytes.length > maxFrameBytes) throw new ProtocolError(`a message of ${bytes.length} bytes`);
  const headerEnd = 4 + bytes.readUInt32BE(0);
  if (headerEnd > bytes.length) throw new ProtocolError("a header longer than its message");
  const header = Header.safeParse(jsonOf(bytes.toString("utf8", 4, headerEnd)));
  if (!header.success) throw new ProtocolError(`a header that is none: ${z.prettifyError(header.error)}`);
  const payload = bytes.subarray(headerEnd);
  if (payload.length > 0 && header.data.k !== "data")
    throw new ProtocolError(`a ${header.data.k} frame with a payload`);
  if (header.data.k === "note" && headerEnd - 4 > maxNoteBytes) throw new ProtocolError(`a note of ${headerEnd} bytes`);
  if (payload.length > maxPayloadBytes) throw new ProtocolError(`a payload of ${payload.length} bytes`);
  return { header: header.data, payload };
}

function jsonOf(text: string): unknown {
  if (jsonDepth(text) > maxJsonDepth) throw new ProtocolError(`a header nested more than ${maxJsonDepth} levels deep`);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ProtocolError("a header that is no JSON", { cause });
  }
}

/**
 * Entries as the columns of one batch statement. Everything that can be wrong with an entry alone (a token id out of range, a
 * reward that is no number) is found here, before it meets others.
 */
import type { EventBody } from "@rolldeck/contracts/events";
import type { Segment, TokenRange } from "@rolldeck/contracts/segments";
import { arrayLiteral } from "./array-literal.ts";
import { cleanJson, cleanText, cutText } from "./clean-text.ts";
import type { EdgeEntry, HotEntry, ToolsEntry, TurnEntry } from "./entries.ts";
import { eventOfEntry } from "./event-of-entry.ts";
import { encodeLogprobs, encodeTokens } from "./token-codec.ts";

/** A segment ready to be stored. */
interface SegmentRow {
  readonly index: number;
  readonly origin: string;
  readonly length: number;
  readonly tokens: Buffer;
  readonly logprobs: Buffer | null;
  readonly policyVersion: number | null;
}
interface CallRow {
  readonly index: number;
  readonly name: string;
  readonly arguments: string;
  readonly raw: string;
}
interface ResultRow {
  readonly index: number;
  readonly output: string;
  readonly errorCode: string | null;
  readonly errorMessage: string | null;
  readonly durationMs: number;
  readonly finalAnswer: string | null;
  readonly wholeBytes: number | null;
  /** Postgres array text; only on the turn's last call. */
  readonly nextRanges: string | null;
}
/** An entry with its event and rows serialized once, however often its batch is tried. */
export interface PreparedEntry {
  readonly entry: HotEntry;
  readonly eventType: EventBody["type"];
  readonly eventBody: string;
  readonly segments: readonly SegmentRow[];
  readonly calls: readonly CallRow[];
  readonly results: readonly ResultRow[];
}

/** @throws RangeError, BoundaryError for an entry that can never be stored */
export function prepareEntry(entry: HotEntry): PreparedEntry {
  const body = eventOfEntry(entry);
  return {
    entry,
    eventType: body.type,
    eventBody: JSON.stringify(body),
    segments: entry.kind === "edge" ? [] : entry.segments.map(segmentRow),
    calls: entry.kind === "turn" ? entry.turn.calls.map(callRow) : [],
    results: entry.kind === "tools" ? resultRows(entry) : [],
  };
}

function segmentRow(segment: Segment): SegmentRow {
  if (segment.logprobs && segment.logprobs.length !== segment.tokens.length) {
    throw new RangeError(
      `segment ${segment.index}: ${segment.logprobs.length} logprobs for ${segment.tokens.length} tokens`,
    );
  }
  return {
    index: segment.index,
    origin: segment.origin,
    length: segment.tokens.length,
    tokens: encodeTokens(segment.tokens),
    logprobs: segment.logprobs ? encodeLogprobs(segment.logprobs) : null,
    policyVersion: segment.policyVersion,
  };
}

const callRow = (call: TurnEntry["turn"]["calls"][number]): CallRow => ({
  index: call.index,
  name: cleanText(call.name),
  arguments: JSON.stringify(cleanJson(call.arguments)),
  raw: cleanText(call.raw),
});

function resultRows({ results, nextRanges }: ToolsEntry): ResultRow[] {
  const rows = results.map(resultRow);
  const last = rows.at(-1);
  if (nextRanges === null) return rows;
  if (last === undefined) throw new RangeError("a context change belongs to a call's result");
  return [...rows.slice(0, -1), { ...last, nextRanges: rangesLiteral(nextRanges) }];
}

const rangesLiteral = (ranges: readonly TokenRange[]): string =>
  `{${ranges.map((range) => `${range.start},${range.end}`).join(",")}}`;

const resultRow = (result: ToolsEntry["results"][number]): ResultRow => ({
  index: result.index,
  output: cleanText(result.output),
  errorCode: result.error ? cleanText(result.error.code) : null,
  errorMessage: result.error ? cleanText(result.error.message) : null,
  durationMs: result.durationMs,
  finalAnswer: result.finalAnswer === undefined ? null : cleanText(result.finalAnswer),
  wholeBytes: result.wholeBytes ?? null,
  nextRanges: null,
});

const notesText = (notes: TurnEntry["turn"]["notes"]): string | null =>
  notes.length === 0 ? null : JSON.stringify(cleanJson(notes.map(({ kind, message }) => ({ kind, message }))));

/** Buffers joined into one parameter, with where each lies: sent as bytes instead of hexadecimal text. */
class Blob {
  readonly #parts: Buffer[] = [];
  #length = 0;
  /** @returns place from 1, as SQL counts */
  add(part: Buffer): number {
    const place = this.#length + 1;
    this.#parts.push(part);
    this.#length += part.length;
    return place;
  }
  join(): Buffer {
    return Buffer.concat(this.#parts, this.#length);
  }
}

export interface BatchParts {
  readonly turns: boolean;
  readonly tools: boolean;
  readonly edges: boolean;
}
export const partsOf = (batch: readonly PreparedEntry[]): BatchParts => ({
  turns: batch.some(({ entry }) => entry.kind === "turn"),
  tools: batch.some(({ entry }) => entry.kind === "tools"),
  edges: batch.some(({ entry }) => entry.kind === "edge"),
});

/** Parameters in the order that `batchStatement` numbers them for the same parts. */
export function batchParameters(batch: readonly PreparedEntry[], parts: BatchParts): (string | Buffer)[] {
  const of = (kind: HotEntry["kind"]) =>
    batch.flatMap((prepared, ord) => (prepared.entry.kind === kind ? [{ ...prepared, ord }] : []));
  const columns = [
    ...entryColumns(batch),
    ...(parts.turns || parts.tools ? segmentColumns(batch) : []),
    ...(parts.turns ? turnColumns(of("turn")) : []),
    ...(parts.tools ? resultColumns(of("tools")) : []),
    ...(parts.edges ? edgeColumns(of("edge")) : []),
  ];
  return columns.map((column) => (Buffer.isBuffer(column) ? column : arrayLiteral(column)));
}

type Column = readonly (string | number | boolean | null)[] | Buffer;

const sorted = (ids: readonly string[]): string[] => [...new Set(ids)].sort();

function entryColumns(batch: readonly PreparedEntry[]): Column[] {
  return [
    batch.map((_, ord) => ord),
    batch.map(({ entry }) => entry.kind),
    batch.map(({ entry }) => entry.runId),
    batch.map(({ entry }) => entry.rolloutId),
    batch.map(({ entry }) => entry.attempt),
    batch.map(({ entry }) => entry.claim),
    batch.map(({ entry }) => (entry.kind === "turn" ? entry.turn.turn : entry.kind === "tools" ? entry.turn : null)),
    batch.map(({ entry }) => (entry.kind === "turn" ? entry.turn.sampledTokens : 0)),
    batch.map(({ entry }) => (entry.kind === "edge" ? entry.stage : null)),
    batch.map(({ entry, segments }) => (entry.kind === "tools" ? (segments[0]?.index ?? null) : null)),
    batch.map(({ entry, results }) => (entry.kind === "tools" ? (results[0]?.index ?? null) : null)),
    batch.map(({ eventType }) => eventType),
    batch.map(({ eventBody }) => eventBody),
    sorted(batch.map(({ entry }) => entry.rolloutId)),
  ];
}

function segmentColumns(batch: readonly PreparedEntry[]): Column[] {
  const rows = batch.flatMap(({ segments }, ord) => segments.map((segment) => ({ ...segment, ord })));
  const blob = new Blob();
  const tokens = rows.map((row) => blob.add(row.tokens));
  const logprobs = rows.map((row) => (row.logprobs ? blob.add(row.logprobs) : null));
  return [
    rows.map((row) => row.ord),
    rows.map((row) => row.index),
    rows.map((row) => row.origin),
    rows.map((row) => row.length),
    tokens,
    rows.map((row) => row.tokens.length),
    logprobs,
    rows.map((row) => row.policyVersion),
    blob.join(),
  ];
}

type Placed = PreparedEntry & { readonly ord: number };

function turnColumns(placed: readonly Placed[]): Column[] {
  const turns = placed.flatMap(({ entry, ord }) => (entry.kind === "turn" ? [{ ...entry.turn, ord }] : []));
  const calls = placed.flatMap((entry) => entry.calls.map((call) => ({ ...call, ord: entry.ord })));
  return [
    turns.map((turn) => turn.ord),
    turns.map((turn) => rangesLiteral(turn.promptRanges)),
    turns.map((turn) => turn.promptTokens),
    turns.map((turn) => turn.sampledSegment),
    turns.map((turn) => turn.stopReason),
    turns.map((turn) => turn.policyVersion),
    turns.map((turn) => turn.cacheHitTokens),
    turns.map((turn) => turn.sampleMs),
    turns.map((turn) => (turn.parseError === null ? null : cleanText(turn.parseError))),
    turns.map((turn) => turn.thread),
    turns.map((turn) => notesText(turn.notes)),
    calls.map((call) => call.ord),
    calls.map((call) => call.index),
    calls.map((call) => call.name),
    calls.map((call) => call.arguments),
    calls.map((call) => call.raw),
  ];
}

function resultColumns(placed: readonly Placed[]): Column[] {
  const rows = placed.flatMap((entry) => entry.results.map((result) => ({ ...result, ord: entry.ord })));
  return [
    rows.map((row) => row.ord),
    rows.map((row) => row.index),
    rows.map((row) => row.output),
    rows.map((row) => row.errorCode),
    rows.map((row) => row.errorMessage),
    rows.map((row) => row.durationMs),
    rows.map((row) => row.finalAnswer),
    rows.map((row) => row.wholeBytes),
    rows.map((row) => row.nextRanges),
  ];
}

function edgeColumns(placed: readonly Placed[]): Column[] {
  const rows = placed.flatMap(({ entry, ord }) => (entry.kind === "edge" ? [{ ord, to: entry.to }] : []));
  const settle = rows.map(({ to }) => (to.move === "settle" ? to : null));
  return [
    rows.map(({ ord }) => ord),
    // A graceful hand-back is the one release that keeps its leases and its place.
    rows.map(({ to }) => (to.move === "release" ? (to.failure === "none" ? "hand-back" : to.failure) : to.move)),
    rows.map(({ to }) => (to.move === "next-stage" ? to.stage : null)),
    rows.map(({ to }) => (to.move === "release" ? failedEnding(to) : (to.ending ?? null))),
    rows.map(({ to }) => (to.reason ? cleanText(to.reason) : null)),
    rows.map(({ to }) => (to.move === "next-stage" && to.finalAnswer != null ? cleanText(to.finalAnswer) : null)),
    settle.map((to) => to?.outcome ?? null),
    settle.map((to) => to?.reward ?? null),
    settle.map((to) => (to ? JSON.stringify(cleanJson({ ...to.rewardParts })) : null)),
    settle.map((to) => to?.success ?? null),
    rows.map(({ to }) => (to.move === "release" ? (to.notBeforeMs ?? null) : null)),
    settle.map((to) => (to?.flags ? arrayLiteral(to.flags.slice(0, 16).map((flag) => cutText(flag, 100))) : null)),
  ];
}

function failedEnding(to: Extract<EdgeEntry["to"], { move: "release" }>): string | null {
  if (to.failure === "none") return null;
  return to.ending ?? (to.failure === "evaluate" ? "verifier_error" : "infrastructure");
}

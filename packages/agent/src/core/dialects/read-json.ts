/**
 * JSON that a model wrote inside a larger text. It is read as it stands; only when that fails are the near misses of
 * `mendRules` tried, and never past `limit`, so that a mended string can't swallow the next call.
 */
import type { JsonObject } from "@rolldeck/contracts/segments";
import { type Json, LiteralError, LiteralReader } from "./literal-reader.ts";

export interface JsonRead {
  readonly value: Json;
  /** Offset after the value. */
  readonly end: number;
  /** Rules that were needed; empty when the text was JSON. */
  readonly mends: readonly string[];
}

/** @param limit end of what a mended reading may look at. @throws LiteralError: the complaint about the text as it stands */
export function readJson(text: string, start: number, limit: number): JsonRead {
  const strict = new LiteralReader(text, start, "json");
  try {
    return { value: strict.readValue(), end: strict.position, mends: [] };
  } catch (complaint) {
    if (!(complaint instanceof LiteralError)) throw complaint;
    const mends = new Set<string>();
    const lenient = new LiteralReader(text.slice(0, limit), start, "json", mends);
    try {
      return { value: lenient.readValue(), end: lenient.position, mends: [...mends] };
    } catch (error) {
      if (error instanceof LiteralError) throw complaint;
      throw error;
    }
  }
}

/** As `readJson`, for a text that is nothing but the value. @throws LiteralError */
export function readWholeJson(text: string): JsonRead {
  const read = readJson(text, 0, text.length);
  const rest = new LiteralReader(text, read.end, "json");
  rest.skipSpace();
  if (rest.position < text.length) throw rest.error(`expected nothing after the JSON value, found ${rest.shown()}`);
  return read;
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

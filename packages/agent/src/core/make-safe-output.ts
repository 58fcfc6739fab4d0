/**
 * Tool output as a model, a database and a browser can all take it. Invariants: the result is well-formed Unicode without
 * terminal codes, NUL or other control characters than tab and line ends, at most `maxBytes` of UTF-8 long; it is cleaned
 * before it is cut; what was cut says so, with numbers, in its place; work and memory depend on `maxBytes`, not on the output's
 * size, but for counting its bytes.
 */
import type { CollectedOutput } from "./collect-output.ts";
import { cutMiddle, type TextEnds, utf8Length } from "./cut-text.ts";
import { terminalText } from "./terminal-text.ts";

export interface SafeOutput {
  readonly text: string;
  /** UTF-8 bytes of the whole output as the tool gave it, when `text` is a cut version; else null. */
  readonly wholeBytes: number | null;
  /** `text` is not what the tool gave, letter for letter: it was cut, or cleaned. */
  readonly changed: boolean;
}

export const makeSafeOutput = (output: string | CollectedOutput, maxBytes: number): string =>
  safeOutput(output, maxBytes).text;

/** @param maxBytes limit of the result in UTF-8 bytes; below about 64 there is no room to say what was cut */
export function safeOutput(output: string | CollectedOutput, maxBytes: number): SafeOutput {
  const { head, tail, gapBytes, bytes } = typeof output === "string" ? endsOf(output, maxBytes) : output;
  const clean = terminalText(head);
  const end = tail === "" ? "" : terminalText(tail);
  const changed = gapBytes > 0 || clean !== head || end !== tail;
  // A UTF-16 unit takes at most 3 bytes: most outputs need no counting to be known short.
  if (gapBytes === 0 && (clean.length + end.length) * 3 <= maxBytes)
    return { text: clean + end, wholeBytes: null, changed };
  const cut = cutMiddle({ head: clean, gapBytes, tail: end }, maxBytes);
  if (cut.cutBytes === 0) return { text: cut.text, wholeBytes: null, changed };
  // Encoded and decoded it is text of its own; a slice would keep the whole output in memory.
  const own = new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(cut.text));
  return { text: own, wholeBytes: bytes ?? utf8Length(head), changed: true };
}

/** Cleaning takes away, so more is looked at than is shown. */
const lookedAt = (maxBytes: number): number => Math.max(65_536, 8 * maxBytes);
/** How far an end of text is looked at for a line to begin with. */
const lineReach = 4096;

/** The parts of an output that are worth cleaning. @returns `bytes` null where they are all of it */
function endsOf(output: string, maxBytes: number): TextEnds & { readonly bytes: number | null } {
  const each = lookedAt(maxBytes);
  if (output.length <= 2 * each) return { head: output, gapBytes: 0, tail: "", bytes: null };
  // Half a pair at a border becomes U+FFFD in the middle of what is cut.
  const head = output.slice(0, each);
  const rest = output.slice(output.length - each);
  // A sequence that began before the border would leave its end behind: whole lines have none.
  const line = rest.lastIndexOf("\n", lineReach) === -1 ? -1 : rest.indexOf("\n");
  const tail = rest.slice(line + 1);
  const bytes = utf8Length(output);
  return { head, gapBytes: bytes - utf8Length(head) - utf8Length(tail), tail, bytes };
}

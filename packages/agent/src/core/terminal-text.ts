/**
 * The text that a terminal's output leaves to be read. Invariants: no escape sequence in seven or eight bits, finished or not, no
 * NUL, no other control character but tab and line ends, no lone surrogate; of a line that was written over (progress bars,
 * overstrike) its last state; one pass, linear in the text.
 */

// biome-ignore-all lint/suspicious/noControlCharactersInRegex: control characters are what this file removes

/** Anything but printable characters, tab and line feed. */
const unusual = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Surrogate}]/u;
/** What moves about in a line: carriage return, backspace, and the codes to erase it or go to its start. */
const movement = /[\r\b]|(?:\u001b\[|\u009b)[0-9]*[GK]/;

// A string ends at the next introducer at the latest, so no text is looked at twice.
const controlString =
  "(?:\\u001b[PX^_]|[\\u0090\\u0098\\u009e\\u009f])[^\\u001b\\u0080-\\u009f]*(?:\\u001b\\\\|\\u009c)";
const systemCommand = "(?:\\u001b\\]|\\u009d)[^\\u0007\\u001b\\u0080-\\u009f]*(?:\\u0007|\\u001b\\\\|\\u009c)";
const controlSequence = "(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]?";
const otherEscape = "\\u001b[ -/]*[0-~]?|[\\u0090\\u0098\\u009c-\\u009f]";
const anyEscape = `${systemCommand}|${controlString}|${controlSequence}|${otherEscape}`;
const escapes = new RegExp(anyEscape, "g");
/** A line in pieces: one escape, one movement, or text. */
const pieces = new RegExp(`${anyEscape}|[\\r\\b]|[^\\u001b\\u0090\\u0098\\u009b-\\u009f\\r\\b]+`, "g");
const eraseOrHome = /^(?:\u001b\[|\u009b)([0-9]*)([GK])$/;

const controls = /[\u0001-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const loneSurrogates = /\p{Surrogate}/gu;

export function terminalText(output: string): string {
  if (!unusual.test(output)) return output;
  const lines = output.split("\n");
  const last = lines.length - 1;
  return lines.map((line, at) => cleanLine(line, at < last)).join("\n");
}

/** @param ended a line feed follows: a carriage return before it is the other half of the line's end */
function cleanLine(line: string, ended: boolean): string {
  if (!unusual.test(line)) return line;
  const body = line.replace(/\r+$/, "");
  const end = ended && body.length < line.length ? "\r" : "";
  const text = movement.test(body) ? lastState(line) : body.replace(escapes, "");
  const safe = text.replaceAll("\u0000", "\u2400").replace(controls, "\ufffd").replace(loneSurrogates, "\ufffd");
  return safe + end;
}

/** Plays a line's movements on cells of one code point each. */
function lastState(line: string): string {
  const cells: string[] = [];
  let cursor = 0;
  // An erased line counts as gone once something goes back to its start: text that is only followed by the code was meant to be read.
  let erased = false;
  const goTo = (column: number) => {
    cursor = Math.min(column, cells.length);
    if (erased && cursor === 0) cells.length = 0;
    erased = false;
  };
  for (const [piece] of line.matchAll(pieces)) {
    const [, count, code] = eraseOrHome.exec(piece) ?? [];
    if (piece === "\r") goTo(0);
    else if (piece === "\b") cursor = Math.max(0, cursor - 1);
    else if (code === "G") goTo(Math.max(0, Number(count) - 1));
    else if (code === "K" && Number(count) === 0) cells.length = cursor;
    else if (code === "K" && Number(count) === 2 && cursor === 0) cells.length = 0;
    else if (code === "K" && Number(count) === 2) erased = true;
    else if (code === undefined && !isEscape(piece)) for (const character of piece) cells[cursor++] = character;
  }
  return cells.join("");
}

const isEscape = (piece: string): boolean => /^[\u001b\u0090\u0098\u009b-\u009f]/.test(piece);

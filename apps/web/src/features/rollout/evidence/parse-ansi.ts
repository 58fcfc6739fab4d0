/**
 * What a terminal would show of a program's output, line by line: colours and weights as data, everything that moves, asks or
 * names dropped. Nothing of it is ever executed or handed to a terminal. Pure.
 */

export interface AnsiStyle {
  /** A colour of the palette, or a CSS colour; null = the text's own. */
  readonly colour: number | string | null;
  readonly background: number | string | null;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underline: boolean;
  readonly inverse: boolean;
  readonly strike: boolean;
}
export interface AnsiSpan {
  readonly text: string;
  readonly style: AnsiStyle;
}
export interface AnsiLine {
  /** All of its text, without style. */
  readonly text: string;
  /** Null: all of it plain. */
  readonly spans: readonly AnsiSpan[] | null;
}

export const plainStyle: AnsiStyle = {
  colour: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  inverse: false,
  strike: false,
};

const sequence =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is read
  /\u001b\[([0-9;:]*)m|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b]*(?:\u001b\\)?|\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** Lines beyond this are not read: nobody reads as many. */
export const maxOutputLines = 200_000;

/** @returns its lines, and how many more there are */
export function parseAnsi(text: string): { readonly lines: readonly AnsiLine[]; readonly moreLines: number } {
  // Only where a run of returns begins: else one of a million is gone over from each of its own.
  const raw = text.replace(/(?<!\r)\r+\n/gu, "\n").split("\n");
  if (raw.at(-1) === "") raw.pop();
  let style = plainStyle;
  const lines = raw.slice(0, maxOutputLines).map((line) => {
    const read = readLine(line, style);
    style = read.style;
    return read.line;
  });
  return { lines, moreLines: raw.length - lines.length };
}

function readLine(raw: string, from: AnsiStyle): { line: AnsiLine; style: AnsiStyle } {
  let style = from;
  let spans: AnsiSpan[] = [];
  let anew = false;
  const put = (part: string) => {
    // A carriage return writes the line anew; only its last state with any text stays.
    for (const [index, text] of part.split("\r").entries()) {
      anew ||= index > 0;
      if (text === "") continue;
      if (anew) spans = [];
      anew = false;
      spans.push({ text, style });
    }
  };
  let at = 0;
  for (const match of raw.matchAll(sequence)) {
    put(raw.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[1] !== undefined) style = applyCodes(style, match[1]);
  }
  put(raw.slice(at));
  const text = spans.map((span) => span.text).join("");
  const plain = spans.every((span) => span.style === plainStyle);
  return { line: { text, spans: plain ? null : spans }, style };
}

const flags: Readonly<Record<number, Partial<AnsiStyle>>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  9: { strike: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  29: { strike: false },
  39: { colour: null },
  49: { background: null },
};

function applyCodes(from: AnsiStyle, written: string): AnsiStyle {
  const codes = written.split(/[;:]/u).map(Number);
  let style = from;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) style = plainStyle;
    else if (code === 38 || code === 48) {
      const { colour, used } = extended(codes, at + 1);
      if (colour !== null) style = { ...style, [code === 38 ? "colour" : "background"]: colour };
      at += used;
    } else {
      const change = flags[code] ?? paletteChange(code);
      if (change) style = { ...style, ...change };
    }
  }
  return same(style, plainStyle) ? plainStyle : style;
}

function paletteChange(code: number): Partial<AnsiStyle> | null {
  if (code >= 30 && code <= 37) return { colour: code - 30 };
  if (code >= 90 && code <= 97) return { colour: code - 82 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 100 && code <= 107) return { background: code - 92 };
  return null;
}

/** `5;n` of 256 colours, or `2;r;g;b`. */
function extended(codes: readonly number[], at: number): { colour: number | string | null; used: number } {
  const byte = (place: number) => Math.min(255, Math.max(0, Math.trunc(codes[place] ?? 0)));
  if (codes[at] === 5) return { colour: of256(byte(at + 1)), used: 2 };
  if (codes[at] === 2) return { colour: `rgb(${byte(at + 1)} ${byte(at + 2)} ${byte(at + 3)})`, used: 4 };
  return { colour: null, used: 1 };
}

function of256(index: number): number | string {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const level = (step: number) => (step === 0 ? 0 : 55 + step * 40);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}

const same = (a: AnsiStyle, b: AnsiStyle): boolean =>
  a.colour === b.colour &&
  a.background === b.background &&
  a.bold === b.bold &&
  a.dim === b.dim &&
  a.italic === b.italic &&
  a.underline === b.underline &&
  a.inverse === b.inverse &&
  a.strike === b.strike;

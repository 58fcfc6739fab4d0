/**
 * The walk over a sampled text that all dialects share: thinking, content and calls, each kept apart. A dialect says where a
 * call may begin and reads what stands there.
 *
 * Invariants:
 * - Thinking holds no calls. It opens at the beginning of a line or behind a call; within a line the mark is only mentioned.
 *   A closing mark that nothing opened means that the prompt opened it: all before it was thinking; behind thinking that was
 *   closed, such a mark counts only at the beginning of a line. Thinking that is never closed leaves no answer. A mark inside
 *   a call's string is only text.
 * - One bad call never hides a good one: the walk goes on behind it.
 * - `functions.x` is read as `x` where only `x` is a tool; any other name stays as written.
 */
import type { ParsedTurn, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { joinProblems } from "./join-problems.ts";

/** Offsets into the text, [start, end). */
interface Span {
  readonly start: number;
  readonly end: number;
}
export interface CallFound extends Span {
  readonly name: string;
  readonly arguments: JsonObject;
  /** What was mended to read it. */
  readonly mends: readonly string[];
}
export interface ProblemFound extends Span {
  readonly message: string;
  /** Its text closes more than it opens, so that calls since the first unclear one may stand inside that one. */
  readonly inDoubt?: boolean;
}
export interface CallsRead {
  /** Where the text goes on. */
  readonly end: number;
  readonly calls: readonly CallFound[];
  readonly problems: readonly ProblemFound[];
}
export interface ThinkingMarks {
  readonly open: string;
  readonly close: string;
}
export interface CallFormat {
  readonly thinking: readonly ThinkingMarks[];
  /** Where a call may begin; with the flag g. */
  readonly start: RegExp;
  /** Null: no call after all, the match is content. */
  read(text: string, match: RegExpExecArray, tools: readonly ToolSpec[]): CallsRead | null;
}
export const thinkTags: ThinkingMarks = { open: "<think>", close: "</think>" };

/** The parts of a turn in the order of the text. */
export interface PartsFound {
  readonly reasoning: readonly string[];
  readonly content: readonly string[];
  readonly calls: readonly CallFound[];
  readonly problems: readonly ProblemFound[];
}
interface Scan extends PartsFound {
  position: number;
  thought: boolean;
  reasoning: string[];
  content: string[];
  calls: CallFound[];
  problems: ProblemFound[];
}

export function scanTurn(text: string, tools: readonly ToolSpec[], format: CallFormat): ParsedTurn {
  const scan: Scan = { position: 0, thought: false, reasoning: [], content: [], calls: [], problems: [] };
  const marks = markFinder(text, format.thinking);
  let start = next(format.start, text, 0);
  for (;;) {
    if (start !== null && start.index < scan.position) start = next(format.start, text, scan.position);
    const mark = marks.from(scan.position);
    if (mark !== null && (start === null || mark.index < start.index)) passMark(scan, text, mark, marks);
    else if (start === null) break;
    else readCalls(scan, text, start, marks, format.read(text, start, tools));
  }
  scan.content.push(text.slice(scan.position));
  return turnOf(scan, text, tools);
}

function next(pattern: RegExp, text: string, from: number): RegExpExecArray | null {
  pattern.lastIndex = from;
  return pattern.exec(text);
}

interface Mark {
  readonly index: number;
  readonly pair: ThinkingMarks;
  readonly opens: boolean;
}
interface MarkFinder {
  /** The first mark at or after an offset; asked with growing offsets it looks at each character once. */
  from(offset: number): Mark | null;
  closing(pair: ThinkingMarks | null, offset: number): Mark | null;
}

function markFinder(text: string, pairs: readonly ThinkingMarks[]): MarkFinder {
  const all: Mark[] = [];
  for (const pair of pairs) {
    for (const opens of [true, false]) {
      const mark = opens ? pair.open : pair.close;
      for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + mark.length))
        all.push({ index: at, pair, opens });
    }
  }
  all.sort((a, b) => a.index - b.index);
  let reached = 0;
  return {
    from: (offset) => {
      while (reached < all.length && (all[reached]?.index ?? 0) < offset) reached += 1;
      return all[reached] ?? null;
    },
    closing: (pair, offset) => {
      for (let i = reached; i < all.length; i++) {
        const mark = all[i];
        if (mark && !mark.opens && mark.index >= offset && (pair === null || mark.pair === pair)) return mark;
      }
      return null;
    },
  };
}

function passMark(scan: Scan, text: string, mark: Mark, marks: MarkFinder): void {
  const before = text.slice(scan.position, mark.index);
  const counts = beginsLine(before) || (!mark.opens && !scan.thought);
  if (!counts) {
    const after = mark.index + (mark.opens ? mark.pair.open : mark.pair.close).length;
    scan.content.push(text.slice(scan.position, after));
    scan.position = after;
    return;
  }
  if (!mark.opens) {
    becomeThinking(scan, text, mark);
    return;
  }
  scan.content.push(before);
  const from = mark.index + mark.pair.open.length;
  const close = marks.closing(mark.pair, from);
  scan.reasoning.push(text.slice(from, close?.index ?? text.length));
  scan.position = close === null ? text.length : close.index + mark.pair.close.length;
  scan.thought = true;
}

const beginsLine = (before: string): boolean => before.slice(before.lastIndexOf("\n") + 1).trim() === "";

/** Everything up to this closing mark was thinking, what looked like calls included. */
function becomeThinking(scan: Scan, text: string, { index, pair }: Mark): void {
  const before = text.slice(0, index).trimStart();
  scan.reasoning = [before.startsWith(pair.open) ? before.slice(pair.open.length) : before];
  scan.content = [];
  scan.calls = [];
  scan.problems = [];
  scan.position = index + pair.close.length;
  scan.thought = true;
}

function readCalls(scan: Scan, text: string, start: RegExpExecArray, marks: MarkFinder, read: CallsRead | null): void {
  const after = start.index + Math.max(1, start[0].length);
  if (read === null) {
    scan.content.push(text.slice(scan.position, after));
    scan.position = after;
    return;
  }
  // What can't be read may be a thought about calls that runs over the end of the thinking.
  for (const problem of scan.thought ? [] : read.problems) {
    const mark = marks.closing(null, problem.start);
    if (mark !== null && mark.index < problem.end) {
      becomeThinking(scan, text, mark);
      return;
    }
  }
  scan.content.push(text.slice(scan.position, start.index));
  scan.calls.push(...read.calls);
  for (const problem of read.problems) {
    scan.problems.push(problem);
    if (problem.inDoubt) dropDoubtful(scan);
  }
  scan.position = Math.max(read.end, after);
}

function dropDoubtful(scan: Scan): void {
  const unclear = [...scan.problems, ...scan.calls.filter(({ mends }) => mends.length > 0)];
  const first = unclear.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY);
  const doubtful = scan.calls.filter(({ start }) => start >= first);
  scan.calls = scan.calls.filter(({ start }) => start < first);
  for (const { start, end, name } of doubtful) {
    const message = `${shortName(name)}: not run, it can't be told from the unreadable text around it`;
    scan.problems.push({ start, end, message });
  }
}

/** @param text what the calls' offsets count in */
export function turnOf(found: PartsFound, text: string, tools: readonly ToolSpec[]): ParsedTurn {
  const repairs: string[] = [];
  const calls = found.calls.map(({ start, end, name: written, arguments: args, mends }, index) => {
    const name = knownName(written, tools);
    const said = name === written ? mends : [`the name ${shortName(written)} was read as ${name}`, ...mends];
    if (said.length > 0) repairs.push(shorten(`${shortName(name)}: ${said.join("; ")}`, 400));
    return { index, name, arguments: args, raw: text.slice(start, end) };
  });
  return {
    content: found.content.join("").trim(),
    reasoning: found.reasoning
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .join("\n\n"),
    calls,
    repairs,
    error: joinProblems(found.problems.map(({ message }) => message)),
  };
}

const namespace = "functions.";

/** Models of one family write the namespace of their training before each name. */
export function knownName(name: string, tools: readonly ToolSpec[]): string {
  const isTool = (one: string) => tools.some((tool) => tool.name === one);
  const bare = name.startsWith(namespace) ? name.slice(namespace.length) : name;
  return bare !== name && !isTool(name) && isTool(bare) ? bare : name;
}

/** Model text in a message: short, whatever its length. */
export const shortName = (name: string): string => shorten(name, 64);
const shorten = (text: string, length: number): string => (text.length > length ? `${text.slice(0, length)}...` : text);

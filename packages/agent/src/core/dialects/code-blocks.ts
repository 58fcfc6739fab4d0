/**
 * Calls as code, as CodeAct and mini-swe agents write them: a thought and a fenced block. A `bash` block is a call of the tool
 * `bash` (or `execute_bash`) with that command, a `python` block the same through `python3 -`, `<finish>answer</finish>` or a block
 * that begins with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT` ends the work, and a `tool` block holds any other call as JSON.
 * Blocks of other languages, and what stands inside a longer fence of theirs, are content. Several blocks are several calls: the
 * run's call policy says what becomes of them. Rules for the end of a block: code-blocks-scan.
 */
import type { Dialect, NamedCall, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { BlockScanner, endsItsHereDocuments, type Fence, fenceOf, shortFence } from "./code-blocks-scan.ts";
import { LiteralError, LiteralReader } from "./literal-reader.ts";
import { readCallObject } from "./read-call-object.ts";
import { readJson } from "./read-json.ts";
import { renderLiteral } from "./render-literal.ts";
import { renderTurn } from "./render-turn.ts";
import { type CallFormat, type CallFound, type CallsRead, scanTurn, thinkTags } from "./scan-turn.ts";
import { toolLines } from "./tool-lines.ts";

const shells = ["bash", "sh", "shell", "mswea_bash_command"];
const pythons = ["python", "python3", "py"];
const anyCall = "tool";
const openFinish = "<finish>";
const closeFinish = "</finish>";
const submitLine = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";
const submits =
  /^\s*echo\s+(["']?)(?:COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT|MINI_SWE_AGENT_FINAL_OUTPUT)\1(?=\s|[;&|]|$)/;

export const codeBlocks: Dialect = {
  name: "code-blocks",
  resultRole: "user",
  looksLike: (text) =>
    /^ {0,3}(?:`{3,}|~{3,})(?:bash|sh|shell|mswea_bash_command|tool)[ \t]*\r?$|^<finish>/m.test(text),
  describeTools,
  renderCalls: (calls) => calls.map((call) => renderCall(call, calls)).join("\n"),
  renderTurn: (turn) => renderTurn(codeBlocks, turn),
  parse: (text, tools) => scanTurn(text, tools, formatOf(text)),
  renderResult: (_call, output) => `Observation:\n${output}`,
};

const shellNames = ["bash", "execute_bash"];
const has = (tools: readonly { readonly name: string }[], name: string) => tools.some((tool) => tool.name === name);
const shellOf = (tools: readonly ToolSpec[]): string => shellNames.find((name) => has(tools, name)) ?? "bash";

function describeTools(tools: readonly ToolSpec[]): string {
  const shell = tools.find(({ name }) => name === shellOf(tools));
  const others = tools.filter((tool) => tool !== shell && tool.name !== "finish" && tool.name !== "submit");
  const lines = [
    "You act by writing code. In each turn think first, then write exactly one fenced block and nothing after it.",
  ];
  if (shell !== undefined) {
    lines.push(
      `A bash block is run in a shell (${shell.description}):`,
      "```bash\nls -la\n```",
      "A python block is run by python3 in the same place:",
      "```python\nprint(1 + 1)\n```",
    );
  }
  if (others.length > 0) {
    lines.push("These tools are called by a block that names one, with its arguments as JSON:", toolLines(others));
    lines.push('```tool\n{"name": "tool_name", "arguments": {"argument": "value"}}\n```');
  }
  if (has(tools, "finish")) lines.push(`End the work with your answer: ${openFinish}the answer${closeFinish}`);
  else if (has(tools, "submit"))
    lines.push("End the work by handing it in, alone in its block:", shellBlock(submitLine));
  lines.push("What came of it is in the next message.");
  return lines.join("\n");
}

function renderCall(call: NamedCall, all: readonly NamedCall[]): string {
  const { name, arguments: args } = call;
  const [[key, value] = [], ...more] = Object.entries(args);
  const text = more.length === 0 && typeof value === "string" ? value : null;
  const isShell = name === "bash" || (name === "execute_bash" && !has(all, "bash"));
  if (isShell && key === "command" && text !== null && text.trim() !== "" && !submits.test(text))
    return shellBlock(text);
  if (name === "finish" && key === "answer" && text !== null && !text.includes(closeFinish)) {
    return text.includes("\n") ? `${openFinish}\n${text}\n${closeFinish}` : `${openFinish}${text}${closeFinish}`;
  }
  if (name === "submit" && key === undefined) return shellBlock(submitLine);
  return block(shortFence, anyCall, renderLiteral({ name, arguments: args }, "json"));
}

const block = (length: number, language: string, content: string): string => {
  const fence = "`".repeat(length);
  return `${fence}${language}\n${content}\n${fence}`;
};

/** With the shortest fence that nothing in the command could close. */
function shellBlock(command: string): string {
  const longest = [...command.matchAll(/^ {0,3}(`{3,})/gm)].reduce(
    (most, [, marks = ""]) => Math.max(most, marks.length),
    0,
  );
  const plain = block(shortFence, "bash", command);
  if (endsItsHereDocuments(command)) {
    const scanner = new BlockScanner(plain, opensCall);
    const end = scanner.endOf({ mark: "`", length: shortFence }, "```bash\n".length, true);
    if (end.closed && end.end === plain.length) return plain;
  }
  return block(Math.max(shortFence, longest) + 1, "bash", command);
}

const languageOf = (info: string): string => /^[^\s{]*/.exec(info)?.[0].toLowerCase() ?? "";
const opensCall = (info: string): boolean => {
  const language = languageOf(info);
  return shells.includes(language) || pythons.includes(language) || language === anyCall;
};

/** One text's: what a longer fence of another language holds is no call. */
function formatOf(text: string): CallFormat {
  const scanner = new BlockScanner(text, opensCall);
  const lastFinish = text.lastIndexOf(closeFinish);
  let quotedUntil = 0;
  return {
    thinking: [thinkTags],
    start: /(?:(?<![^\n])|(?<=<\/think>))(?: {0,3}(?:`{3,}|~{3,})|[ \t]*<finish>)/g,
    read: (_text, match, tools) => {
      if (match.index < quotedUntil) return null;
      if (match[0].endsWith(openFinish)) return readFinish(text, match, tools, lastFinish);
      const lineEnd = endOfLine(text, match.index);
      const fence = fenceOf(text.slice(match.index, lineEnd));
      if (fence === null) return null;
      if (opensCall(fence.info)) return readBlock(text, { ...fence, start: match.index, lineEnd }, scanner, tools);
      if (fence.length > shortFence) quotedUntil = scanner.quotedEnd(fence, lineEnd + 1) ?? quotedUntil;
      return null;
    },
  };
}

const endOfLine = (text: string, from: number): number => {
  const newline = text.indexOf("\n", from);
  return newline === -1 ? text.length : newline;
};

interface Opening extends Fence {
  readonly indent: number;
  readonly info: string;
  readonly start: number;
  readonly lineEnd: number;
}

function readBlock(text: string, opening: Opening, scanner: BlockScanner, tools: readonly ToolSpec[]): CallsRead {
  const { start, lineEnd } = opening;
  const language = languageOf(opening.info);
  const end = scanner.endOf(opening, lineEnd + 1, shells.includes(language));
  const fence = opening.mark.repeat(opening.length);
  if (!end.closed) {
    const message = `the ${language} block is not closed: write ${fence} on a line of its own behind the code`;
    return problem(start, end.end, message);
  }
  const { content, mends } = contentOf(text.slice(lineEnd + 1, end.contentEnd), text, opening);
  if (content.trim() === "") return problem(start, end.end, `the ${language} block is empty`);
  if (language === anyCall) return readAnyCall(content, start, end.end);
  const command = pythons.includes(language) ? pythonCommand(content) : content;
  const call = shells.includes(language) && submits.test(content) ? submission(tools) : shellCall(command, tools);
  return found({ ...call, start, end: end.end, mends });
}

/** The block's own lines: without its indentation, and without the carriage returns of a text that has them everywhere. */
function contentOf(raw: string, text: string, { indent, lineEnd }: Opening): { content: string; mends: string[] } {
  const isDos = text[lineEnd - 1] === "\r";
  const lines = isDos ? raw.replaceAll("\r\n", "\n").replace(/\r$/, "") : raw;
  const content = indent === 0 ? lines : lines.replace(new RegExp(`^ {1,${indent}}`, "gm"), "");
  return { content, mends: isDos ? ["the carriage returns at its line ends were left out"] : [] };
}

const shellCall = (command: string, tools: readonly ToolSpec[]) => ({ name: shellOf(tools), arguments: { command } });

/** Through the shell, so that it runs where commands run. */
function pythonCommand(code: string): string {
  const lines = new Set(code.split("\n"));
  let word = "PYTHON";
  while (lines.has(word)) word += "_";
  return `python3 - <<'${word}'\n${code}\n${word}`;
}

const submission = (tools: readonly ToolSpec[]): NamedCall =>
  has(tools, "finish") && !has(tools, "submit")
    ? { name: "finish", arguments: { answer: "submitted" } }
    : { name: "submit", arguments: {} };

function readAnyCall(content: string, start: number, end: number): CallsRead {
  try {
    const { value, end: after, mends } = readJson(content, 0, content.length);
    const call = readCallObject(value, { key: "arguments", ignored: [] }, 0);
    const reader = new LiteralReader(content, after, "json");
    reader.skipSpace();
    if (reader.position < content.length)
      throw reader.error(`expected nothing after the JSON object, found ${reader.shown()}`);
    return found({ ...call, start, end, mends: [...mends, ...call.mends] });
  } catch (error) {
    if (!(error instanceof LiteralError)) throw error;
    return problem(start, end, `tool block: ${error.message}`);
  }
}

/** @param last where the last closing tag of the text is: behind it none is looked for */
function readFinish(text: string, match: RegExpExecArray, tools: readonly ToolSpec[], last: number): CallsRead {
  const start = match.index;
  const from = start + match[0].length;
  const close = from > last ? -1 : text.indexOf(closeFinish, from);
  if (close === -1)
    return problem(start, endOfLine(text, from), `${openFinish} is not closed: write ${closeFinish} behind it`);
  const raw = text.slice(from, close);
  const answer = raw.startsWith("\n") ? raw.slice(1, raw.endsWith("\n") ? -1 : undefined) : raw;
  const name = has(tools, "submit") && !has(tools, "finish") ? "submit" : "finish";
  const args: JsonObject = name === "finish" ? { answer } : { message: answer };
  return found({ name, arguments: args, start, end: close + closeFinish.length, mends: [] });
}

const found = (call: CallFound): CallsRead => ({ end: call.end, calls: [call], problems: [] });
const problem = (start: number, end: number, message: string): CallsRead => ({
  ...{ end, calls: [] },
  problems: [{ start, end, message }],
});

/**
 * Calls of the Qwen coder models: `<tool_call><function=N><parameter=P>value</parameter></function></tool_call>`, each value
 * on lines of its own. The outer tags may be missing. Rules and repairs: `readXmlCall`.
 */
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import { qwenTags, readXmlCall } from "./read-xml-call.ts";
import { renderTurn } from "./render-turn.ts";
import { renderXmlCall, showXmlCall } from "./render-xml-call.ts";
import { type CallFormat, scanTurn, thinkTags } from "./scan-turn.ts";
import { toolLines } from "./tool-lines.ts";

export const qwenXml: Dialect = {
  name: "qwen-xml",
  resultRole: "tool",
  looksLike: (text) => /<tool_call>\s*<function=/.test(text),
  describeTools: (tools) =>
    [
      "You act by calling tools. Available tools, one JSON object a line:",
      toolLines(tools),
      "Write each call as tags, each value on lines of its own, without any escapes:",
      "<tool_call>\n<function=tool_name>\n<parameter=argument>\nvalue\n</parameter>\n</function>\n</tool_call>",
      "Strings are written as they are, all other values as JSON. Words may stand before the calls, not after them.",
    ].join("\n"),
  renderCalls: (calls) => calls.map((call) => `<tool_call>\n${renderXmlCall(call, true)}\n</tool_call>`).join("\n"),
  showCall: (call) => `<tool_call>\n${showXmlCall(call, true)}\n</tool_call>`,
  renderTurn: (turn) => renderTurn(qwenXml, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: (_call, output) => output,
};

const format: CallFormat = {
  thinking: [thinkTags],
  start: qwenTags.opening,
  read: (text, match, tools) => readXmlCall(text, match, tools, qwenTags),
};

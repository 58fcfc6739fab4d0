/**
 * The format of the SkyRL-Agent paper: `<function=N>`, a line for each `<parameter=P>value</parameter>`, `</function>`. Tools
 * are described in the system message and results come back as user text under a heading. Rules and repairs: `readXmlCall`.
 */
import type { Dialect, ToolSpec } from "@rolldeck/contracts/ports/dialect";
import { describeParameters } from "./describe-parameters.ts";
import { readXmlCall, skyrlTags } from "./read-xml-call.ts";
import { renderTurn } from "./render-turn.ts";
import { renderXmlCall, showXmlCall } from "./render-xml-call.ts";
import { type CallFormat, scanTurn, thinkTags } from "./scan-turn.ts";

export const skyrl: Dialect = {
  name: "skyrl",
  resultRole: "user",
  looksLike: (text) => /<function=/.test(text) && !/<tool_call>\s*<function=/.test(text),
  describeTools: (tools: readonly ToolSpec[]) =>
    [
      "You act by calling tools. Each tool with its parameters; ? marks what may be left out:",
      ...tools.map(
        ({ name, description, parameters }) =>
          `- ${name}: ${description}\n  parameters: ${describeParameters(parameters)}`,
      ),
      "Write a call as tags, with nothing after it:",
      "<function=tool_name>\n<parameter=first>value</parameter>\n<parameter=second>\na value of\nseveral lines\n</parameter>\n</function>",
      "Strings are written as they are, all other values as JSON. The result comes in the next message.",
    ].join("\n"),
  renderCalls: (calls) => calls.map((call) => renderXmlCall(call, false)).join("\n"),
  showCall: (call) => showXmlCall(call, false),
  renderTurn: (turn) => renderTurn(skyrl, turn),
  parse: (text, tools) => scanTurn(text, tools, format),
  renderResult: ({ name }, output) => `EXECUTION RESULT of [${name}]:\n${output}`,
};

const format: CallFormat = {
  thinking: [thinkTags],
  start: skyrlTags.opening,
  read: (text, match, tools) => readXmlCall(text, match, tools, skyrlTags),
};

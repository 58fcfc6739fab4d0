import type { NamedCall } from "@rolldeck/contracts/ports/dialect";
import type { Json } from "./literal-reader.ts";
import { renderLiteral } from "./render-literal.ts";

const marks = /<\/?parameter\b|<\/?function\b|<\/?tool_call>|<\/?think>/;

/**
 * One call as tags. Strings are written as they are, other values as JSON.
 * @param wrap whether each value stands on lines of its own; otherwise only values that need it do
 * @throws RangeError for a name or a string that would hold a tag of the format, which has no escapes
 */
export function renderXmlCall(call: NamedCall, wrap: boolean): string {
  if (/[<>\n]/.test(call.name))
    throw new RangeError(`the format can't write the tool name ${JSON.stringify(call.name)}`);
  for (const [key, value] of Object.entries(call.arguments)) {
    if (!/^[^\s<>="']+$/.test(key)) throw new RangeError(`the format can't write the parameter ${JSON.stringify(key)}`);
    if (typeof value === "string" && marks.test(value))
      throw new RangeError(
        `the format can't write the string ${JSON.stringify(value.slice(0, 64))}: it holds one of its tags`,
      );
  }
  return showXmlCall(call, wrap);
}

/** As `renderXmlCall`, for people and messages: whatever the names and values. */
export function showXmlCall({ name, arguments: args }: NamedCall, wrap: boolean): string {
  const parameters = Object.entries(args).map(([key, value]) => {
    const text = valueText(value);
    const lines = wrap || text.includes("\n");
    return `<parameter=${key}>${lines ? `\n${text}\n` : text}</parameter>`;
  });
  return [`<function=${name}>`, ...parameters, "</function>"].join("\n");
}

/** Inside JSON a tag has an escape. */
const valueText = (value: Json): string =>
  typeof value === "string" ? value : renderLiteral(value, "json").replaceAll("<", "\\u003c");

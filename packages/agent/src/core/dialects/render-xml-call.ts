import type { NamedCall } from "@rolldeck/contracts/ports/dialect";
import type { Json } from "./literal-reader.ts";
import { renderLiteral } from "./render-literal.ts";

const marks = /<\/?parameter\b|<\/?function\b|<\/?tool_call>|<\/?think>/;

/**
 * One call as tags. Strings are written as they are, other values as JSON.
 * @param wrap whether each value stands on lines of its own; otherwise only values that need it do
 * @throws RangeError for a name or a string that would hold a tag of the format, which has no escapes
 */
export function renderXmlCall({ name, arguments: args }: NamedCall, wrap: boolean): string {
  if (/[<>\n]/.test(name)) throw new RangeError(`the format can't write the tool name ${JSON.stringify(name)}`);
  const parameters = Object.entries(args).map(([key, value]) => {
    if (!/^[^\s<>="']+$/.test(key)) throw new RangeError(`the format can't write the parameter ${JSON.stringify(key)}`);
    const text = valueText(value);
    const lines = wrap || text.includes("\n");
    return `<parameter=${key}>${lines ? `\n${text}\n` : text}</parameter>`;
  });
  return [`<function=${name}>`, ...parameters, "</function>"].join("\n");
}

function valueText(value: Json): string {
  // Inside JSON a tag has an escape.
  if (typeof value !== "string") return renderLiteral(value, "json").replaceAll("<", "\\u003c");
  if (marks.test(value)) throw new RangeError("the format can't write a string that holds one of its tags");
  return value;
}

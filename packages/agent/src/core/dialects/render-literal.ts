/** Literals as text, the inverse of LiteralReader: reading what was rendered gives the same value. */
import type { Json, LiteralStyle } from "./literal-reader.ts";

/** Separators are those of Python's `json.dumps` and `repr`, which models were trained on. */
export function renderLiteral(value: Json, style: LiteralStyle): string {
  if (value === null) return style === "json" ? "null" : "None";
  if (typeof value === "boolean") return style === "json" ? String(value) : value ? "True" : "False";
  if (typeof value === "number") return renderNumber(value);
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => renderLiteral(item, style)).join(", ")}]`;
  const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${renderLiteral(item, style)}`);
  return `{${entries.join(", ")}}`;
}

/** An integer past 2^53 is written as the double it is, with an exponent, so that no digit is made up. */
function renderNumber(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} has no literal`);
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : JSON.stringify(value);
}

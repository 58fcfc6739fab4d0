/**
 * Samples of chosen metrics out of Prometheus' text format (version 0.0.4), by name; their labels are read over. A line of a chosen
 * metric that is not well formed spoils the whole text: half of it would be another number. Other lines are nobody's business.
 */
const label = String.raw`[a-zA-Z_]\w*[ \t]*=[ \t]*"(?:[^"\\\n]|\\["\\n])*"`;
const labels = String.raw`\{[ \t]*(?:${label}[ \t]*(?:,[ \t]*${label}[ \t]*)*,?[ \t]*)?\}`;
const value = String.raw`[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Inf|NaN)`;
const sample = new RegExp(
  String.raw`^([a-zA-Z_:][\w:]*)(?:[ \t]*${labels}[ \t]*|[ \t]+)(${value})(?:[ \t]+-?\d+)?[ \t]*$`,
);
const nameAtStart = /^[a-zA-Z_:][\w:]*/;

/** @returns the values of each name, in their order; null: the text is not that format */
export function readSamples(text: string, names: readonly string[]): ReadonlyMap<string, readonly number[]> | null {
  const found = new Map<string, number[]>(names.map((name) => [name, []]));
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trimStart();
    const values = found.get(nameAtStart.exec(trimmed)?.[0] ?? "");
    if (values === undefined) continue;
    const read = sample.exec(trimmed)?.[2];
    if (read === undefined) return null;
    values.push(numberOf(read));
  }
  return found;
}

const numberOf = (text: string): number => Number(text.replace("Inf", "Infinity"));

/**
 * Numbers as people read them here: three significant digits, thin space before units, a real minus sign, "n/a" for what
 * is missing (never 0). Pure.
 */
export const missing = "n/a";
export const thinSpace = "\u2009";
const minus = "\u2212";

const signed = (text: string): string => text.replace(/^-/, minus);

/** Three significant digits without an exponent where that stays readable; `1.23e−4` below 0.001. */
export function formatNumber(value: number | null | undefined, unit = ""): string {
  if (value === null || value === undefined) return missing;
  const suffix = unit ? `${thinSpace}${unit}` : "";
  if (Number.isNaN(value)) return `NaN${suffix}`;
  if (!Number.isFinite(value)) return `${value > 0 ? "" : minus}∞${suffix}`;
  const magnitude = Math.abs(value);
  if (magnitude === 0) return `0${suffix}`;
  if (magnitude < 0.001) {
    const [digits = "0", exponent = "0"] = value.toExponential(2).split("e");
    return `${signed(digits)}e${signed(String(Number(exponent)))}${suffix}`;
  }
  if (magnitude >= 9_995) return `${formatLarge(value)}${suffix}`;
  if (magnitude >= 999.5) return `${signed(Math.round(value).toLocaleString("en-US"))}${suffix}`;
  return `${signed(value.toPrecision(3))}${suffix}`;
}

/** For cells of a few characters: two decimals below 10, three digits above. The exact value belongs beside it on demand. */
export function formatShort(value: number): string {
  return Math.abs(value) < 9.995
    ? signed(String(Number(value.toFixed(2)) === 0 ? 0 : value.toFixed(2)))
    : formatNumber(value);
}

const prefixes = [
  { from: 999.5e9, divisor: 1e12, sign: "T" },
  { from: 999.5e6, divisor: 1e9, sign: "G" },
  { from: 999.5e3, divisor: 1e6, sign: "M" },
  { from: 0, divisor: 1e3, sign: "k" },
] as const;

function formatLarge(value: number): string {
  const magnitude = Math.abs(value);
  const prefix = prefixes.find((candidate) => magnitude >= candidate.from) ?? prefixes[3];
  const scaled = value / prefix.divisor;
  const text = Math.abs(scaled) >= 999.5 ? Math.round(scaled).toLocaleString("en-US") : scaled.toPrecision(3);
  return `${signed(text)}${thinSpace}${prefix.sign}`;
}

/** Whole counts: exact below 10,000, else three digits with a prefix. Takes decimal text for counts past 2^53. */
export function formatCount(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return missing;
  const number = Number(value);
  if (!Number.isFinite(number)) return missing;
  return Math.abs(number) < 10_000 ? signed(Math.round(number).toLocaleString("en-US")) : formatLarge(number);
}

/** Exact with separators, for tooltips; decimal text keeps every digit. */
export function formatExact(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return missing;
  if (typeof value === "string" && /^-?\d+$/.test(value)) return signed(BigInt(value).toLocaleString("en-US"));
  return signed(Number(value).toLocaleString("en-US", { maximumSignificantDigits: 17 }));
}

/** A fraction 0…1 as a percentage of three significant digits. */
export function formatFraction(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return formatNumber(value);
  const percent = value * 100;
  if (percent === 0 || percent === 100) return `${percent}${thinSpace}%`;
  return `${signed(percent.toPrecision(3))}${thinSpace}%`;
}

/** Their name says what the number is: it is not repeated behind it. */
const bareUnits: ReadonlySet<string> = new Set(["reward", "loss", "L2", "turns", "rate"]);
/** A metric's value in its own unit; fractions as percentages. */
export function formatInUnit(value: number | null | undefined, unit: string): string {
  if (unit === "fraction") return formatFraction(value);
  if (bareUnits.has(unit)) return formatNumber(value);
  return formatNumber(value, unit);
}

/** Bytes in binary prefixes. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return missing;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${value}${thinSpace}B` : `${value.toPrecision(3)}${thinSpace}${units[unit]}`;
}

/** Middle of a long id left out; the whole id is copied on click. */
export function shortenId(id: string, keep = 5): string {
  return id.length <= keep * 2 + 2 ? id : `${id.slice(0, keep)}…${id.slice(-keep)}`;
}

/** First `limit` UTF-16 units without splitting a surrogate pair. */
export function cutText(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}

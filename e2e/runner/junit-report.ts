/** pytest's JUnit file as a suite's result. It is written by pytest itself, so that reading it needs no XML parser. */
import { addFailure, emptyResult, type SuiteResult } from "./suite-result.ts";

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function decode(text: string): string {
  return text.replaceAll(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities[name] ?? whole;
    return String.fromCodePoint(hex === undefined ? Number(decimal) : Number.parseInt(hex, 16));
  });
}

const attribute = (text: string, name: string): string | undefined => {
  const value = new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1];
  return value === undefined ? undefined : decode(value);
};

export function resultOfJunit(xml: string): SuiteResult {
  const result = emptyResult();
  for (const [, attributes = "", , body = ""] of xml.matchAll(/<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = `pytest: ${attribute(attributes, "name") ?? "?"}`;
    const failed = /<(?:failure|error)\b([^>]*)>/.exec(body);
    // Of what pytest says the message holds the assertion, and the text the whole test's source before it.
    if (failed) addFailure(result, name, attribute(failed[1] ?? "", "message"));
    else if (/<skipped\b/.test(body)) result.skipped.push({ name, reason: attribute(body, "message") ?? "skipped" });
    else result.passed += 1;
  }
  return result;
}

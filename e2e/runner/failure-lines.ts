/**
 * The failures as the last thing in the output, because CI keeps little more than an output's end: all by name, the first ones
 * with what they said. Every text is cut, so that one huge difference can't push the other failures out.
 */
import { stripVTControlCharacters } from "node:util";
import type { Failure } from "./suite-result.ts";

const mostTold = 10;
const mostLines = 15;
const mostCharacters = 1_500;

/** @returns lines to print, without their ends */
export function failureLines(failures: readonly Failure[]): string[] {
  const lines = failures.flatMap(({ name, message }, at) => {
    const said = at < mostTold ? firstOf(message) : [];
    return [`failed: ${name}`, ...said.map((line) => `    ${line}`)];
  });
  if (failures.length > mostTold) lines.push(`(messages of the first ${mostTold} of ${failures.length} failures)`);
  return lines;
}

/** The first lines of a message, without colours; a cut is marked. */
function firstOf(message: string): string[] {
  const plain = stripVTControlCharacters(message).trim();
  if (plain === "") return [];
  const short = plain.split("\n").slice(0, mostLines).join("\n").slice(0, mostCharacters);
  return (short.length < plain.length ? `${short} …` : short).split("\n");
}

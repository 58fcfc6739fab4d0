/**
 * Checks of the source as a whole: each passes or fails as one. Two run at a time, because most of them use one core; so their
 * output is shown once they end, and that of those that fail is kept for the end of the log.
 */
import path from "node:path";
import { runCommand } from "./run-command.ts";
import { addFailure, emptyResult, type SuiteResult } from "./suite-result.ts";

export interface Gate {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

const bin = (root: string, name: string): string => path.join(root, "node_modules/.bin", name);

/** The longest first: two lanes then end at about the same time. */
export const gatesOf = (root: string): readonly Gate[] => [
  // One program for all but pages and e2e: package by package (turbo) each would check its dependencies' sources again.
  { name: "types", command: bin(root, "tsc"), args: ["--noEmit", "-p", "."] },
  { name: "types of pages", command: bin(root, "tsc"), args: ["--noEmit", "-p", "apps/web"] },
  { name: "types of e2e", command: bin(root, "tsc"), args: ["--noEmit", "-p", "e2e"] },
  {
    name: "boundaries",
    command: bin(root, "depcruise"),
    args: ["apps", "packages", "--config", ".dependency-cruiser.cjs"],
  },
  { name: "knip", command: bin(root, "knip"), args: [] },
  { name: "biome", command: bin(root, "biome"), args: ["check", "."] },
];

/** @param limitMs of each gate @param say takes what each prints, as a whole */
export async function runGates(
  gates: readonly Gate[],
  options: { readonly cwd: string; readonly limitMs: number; readonly say: (text: string) => void },
): Promise<SuiteResult> {
  const total = emptyResult();
  const waiting = [...gates];
  const lane = async (): Promise<void> => {
    for (let gate = waiting.shift(); gate !== undefined; gate = waiting.shift()) await runGate(gate, options, total);
  };
  await Promise.all([lane(), lane()]);
  return total;
}

async function runGate(gate: Gate, options: Parameters<typeof runGates>[1], total: SuiteResult): Promise<void> {
  const end = await runCommand(gate.command, gate.args, {
    cwd: options.cwd,
    env: { TURBO_TELEMETRY_DISABLED: "1", NEXT_TELEMETRY_DISABLED: "1" },
    limitMs: options.limitMs,
    keepOutput: true,
  });
  options.say(`${gate.name}: ${end.code === 0 ? "passed" : "failed"}\n${end.output}`);
  if (end.code === 0) total.passed += 1;
  else {
    const how = end.timedOut ? `over its limit of ${options.limitMs / 60_000} min` : `exit ${end.code}`;
    addFailure(total, `${gate.name}: ${how}`, end.output);
  }
}

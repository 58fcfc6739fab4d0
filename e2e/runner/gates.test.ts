import { expect, test } from "vitest";
import { type Gate, runGates } from "./gates.ts";

const node = (name: string, source: string): Gate => ({ name, command: process.execPath, args: ["-e", source] });

async function runAll(gates: readonly Gate[], limitMs = 60_000) {
  const said: string[] = [];
  const result = await runGates(gates, { cwd: import.meta.dirname, limitMs, say: (text) => said.push(text) });
  return { result, said };
}

test("every gate is run and counted, and what a failed one wrote is its message", async () => {
  const { result, said } = await runAll([
    node("types", "console.log('a.ts(1,1): no such type'); console.error('1 error'); process.exit(2)"),
    node("lint", "console.log('Checked 3 files')"),
    node("boundaries", ""),
  ]);
  expect(result).toMatchObject({ passed: 2, failed: 1 });
  expect(result.failures).toEqual([
    { name: "types: exit 2", message: expect.stringMatching(/a\.ts\(1,1\): no such type[\s\S]*1 error/) },
  ]);
  expect(said.toSorted()).toEqual([
    "boundaries: passed\n",
    "lint: passed\nChecked 3 files\n",
    expect.stringContaining("types: failed\na.ts(1,1)"),
  ]);
});

test("a gate that hangs is ended at its limit, and one that can't be started fails", async () => {
  const missing = { name: "missing", command: "/no/such/tool", args: [] };
  const { result } = await runAll([node("hangs", "setInterval(() => {}, 1000)"), missing], 1_000);
  expect(result).toMatchObject({ passed: 0, failed: 2 });
  expect(result.failures.map(({ name }) => name).toSorted()).toEqual([
    expect.stringMatching(/^hangs: over its limit/),
    "missing: exit -1",
  ]);
});

/**
 * `npm run fidelity [-- --write-golden] [-- --write-batches]`: writes docs/fidelity.md; the last line on stdout is one JSON
 * object. Status 1 when a row misses its bound or something could not be called.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { fidelityBatches } from "@rolldeck/rl/testing/fidelity-batches";
import { fidelityNote } from "./fidelity-note.ts";
import { writeGolden } from "./golden.ts";
import { type HeldAgainst, holdAgainst } from "./hold-against.ts";
import { batchesFile, outsidePackages } from "./packages.ts";

const { values: flags } = parseArgs({
  options: { "write-golden": { type: "boolean" }, "write-batches": { type: "boolean" } },
});
const started = Date.now();
const say = (line: string): void => {
  process.stderr.write(`[${((Date.now() - started) / 1000).toFixed(1)} s] ${line}\n`);
};

if (flags["write-batches"])
  writeFileSync(
    batchesFile,
    `[\n${fidelityBatches()
      .map((batch) => JSON.stringify(batch))
      .join(",\n")}\n]\n`,
  );

const held: HeldAgainst[] = [];
for (const name of outsidePackages) held.push(await holdAgainst(name, say));

writeFileSync(path.resolve(import.meta.dirname, "../../docs/fidelity.md"), fidelityNote(held));
const compared = held.flatMap((each) => each.compared);
const missing = held.flatMap((each) => each.missing);
for (const { row, failure } of compared) if (failure !== null) say(`${row.what} against ${row.against}: ${failure}`);
for (const { what, error } of missing) say(`could not be called: ${what}: ${error}`);
if (flags["write-golden"])
  for (const { name, output } of held) if (output !== null) writeGolden(name, output, fidelityBatches());

process.stdout.write(`${JSON.stringify({ rows: compared.map(({ row }) => row), missing })}\n`);
process.exit(missing.length > 0 || compared.some(({ failure }) => failure !== null) ? 1 : 0);

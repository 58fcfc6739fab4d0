/** Runs a package's scripts in its environment: what imports, and what its functions say about the batches. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { EnvironmentError } from "../runner/locked-environment.ts";
import { runCommand } from "../runner/run-command.ts";
import { batchesFile, exportsText, fidelityFolder, type OutsidePackage } from "./packages.ts";
import { ImportLine, ReferenceOutput } from "./reference-output.ts";

const minute = 60_000;
const script = (python: string, args: readonly string[], limitMs: number) =>
  runCommand(python, args, {
    cwd: tmpdir(),
    env: {
      PYTHONPATH: fidelityFolder,
      PYTHONDONTWRITEBYTECODE: "1",
      HF_HUB_OFFLINE: "1",
      OMP_NUM_THREADS: "1",
      // Without it JAX and others look for accelerators.
      JAX_PLATFORMS: "cpu",
    },
    limitMs,
    keepOutput: true,
  });

/** Each outside function that the reference calls, and whether it imports. @throws EnvironmentError */
export async function tryImports(name: OutsidePackage, python: string): Promise<ImportLine[]> {
  const end = await script(python, [path.join(fidelityFolder, "imports.py"), name], 5 * minute);
  // Packages print to either stream as they are imported.
  const lines = end.output.split("\n").filter((line) => line.startsWith('{"package"'));
  if (end.code !== 0 || lines.length === 0)
    throw new EnvironmentError(`imports of ${name}: exit ${end.code}\n${end.output.slice(-2000)}`);
  return lines.map((line) => ImportLine.parse(JSON.parse(line)));
}

/** What the package's functions say. @throws EnvironmentError when its script ends without an answer */
export async function askPackage(name: OutsidePackage, python: string): Promise<ReferenceOutput> {
  const folder = mkdtempSync(path.join(tmpdir(), "rolldeck-fidelity-"));
  try {
    const out = path.join(folder, "out.json");
    const reference = path.join(fidelityFolder, name, "reference.py");
    const exports = path.join(folder, "exports.json");
    writeFileSync(exports, exportsText(name));
    const end = await script(python, [reference, batchesFile, out, exports], 8 * minute);
    if (end.code !== 0)
      throw new EnvironmentError(`reference of ${name}: exit ${end.code}\n${end.output.slice(-2000)}`);
    return ReferenceOutput.parse(JSON.parse(readFileSync(out, "utf8")));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One package from its environment to its rows. */
import { fidelityBatches } from "@rolldeck/rl/testing/fidelity-batches";
import type { Say } from "../runner/locked-environment.ts";
import { askPackage, tryImports } from "./ask-package.ts";
import { type Compared, compare } from "./comparison.ts";
import { prepareEnvironment } from "./environment.ts";
import { comparisonsOf, type OutsidePackage } from "./packages.ts";
import type { ReferenceOutput } from "./reference-output.ts";

export interface Missing {
  readonly what: string;
  readonly error: string;
}
export interface HeldAgainst {
  readonly name: OutsidePackage;
  readonly compared: readonly Compared[];
  /** What could not be called, with its error. */
  readonly missing: readonly Missing[];
  /** Null: the package could not be asked at all. */
  readonly output: ReferenceOutput | null;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Rows of one package; whatever goes wrong on the way is told among `missing`, never left out. */
export async function holdAgainst(name: OutsidePackage, say: Say): Promise<HeldAgainst> {
  try {
    const python = await prepareEnvironment(name, say);
    say(`${name}: imports`);
    const imports = await tryImports(name, python);
    say(`${name}: its numbers`);
    const output = await askPackage(name, python);
    const results = comparisonsOf[name].map((comparison) => compare(comparison, output, fidelityBatches()));
    return {
      name,
      output,
      compared: results.filter((result) => result !== null),
      missing: [
        ...imports.flatMap((line) => (line.ok ? [] : [{ what: line.function, error: line.error ?? "" }])),
        ...output.missing.map(({ what, error }) => ({ what: `${name} ${what}`, error })),
      ],
    };
  } catch (error) {
    return { name, output: null, compared: [], missing: [{ what: name, error: messageOf(error) }] };
  }
}

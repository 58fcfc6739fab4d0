/**
 * Order of test files that run two at a time: the long ones first, so that no lane is left with one of them at the end. Vitest
 * itself knows how long a file takes only on a machine that has run it before.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { BaseSequencer, type TestSequencerConstructor, type TestSpecification } from "vitest/node";

/** @param names the long files from the repository's root, longest first @throws Error for a file that is no more */
export function longFirst(names: readonly string[]): TestSequencerConstructor {
  const root = path.resolve(import.meta.dirname, "..");
  const places = names.map((name) => path.join(root, name));
  for (const place of places) if (!existsSync(place)) throw new Error(`no long test file: ${place}`);
  const rank = ({ moduleId }: TestSpecification): number => {
    const at = places.indexOf(moduleId);
    return at === -1 ? places.length : at;
  };
  return class extends BaseSequencer {
    override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
      return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
    }
  };
}

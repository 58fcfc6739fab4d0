/** One package as a suite of `npm run test:all`: a row is a test, and so is each function that has to be callable. */
import { addFailure, emptyResult, type SuiteResult } from "../runner/suite-result.ts";
import { holdAgainst } from "./hold-against.ts";
import type { OutsidePackage } from "./packages.ts";

export async function fidelitySuite(name: OutsidePackage, say: (text: string) => void): Promise<SuiteResult> {
  const { compared, missing } = await holdAgainst(name, (line) => say(`${line}\n`));
  const result = emptyResult();
  for (const { row, failure } of compared) {
    if (failure === null) result.passed += 1;
    else addFailure(result, `fidelity: ${row.what} against ${row.against}`, failure);
  }
  for (const { what, error } of missing) addFailure(result, `fidelity: ${what} could not be called`, error);
  return result;
}

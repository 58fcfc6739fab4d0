/** The outside packages: their folders, lock files and comparisons. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { type FidelityBatch, fidelityBatches } from "@rolldeck/rl/testing/fidelity-batches";
import { z } from "zod";
import { lockHashOf } from "../runner/locked-environment.ts";
import type { Comparison } from "./comparison.ts";
import { cookbookComparisons, cookbookExport } from "./cookbook-comparisons.ts";
import { skyrlExport, skyrlExportComparisons, verlExport, verlExportComparisons } from "./export-comparisons.ts";
import { skyrlComparisons } from "./skyrl-comparisons.ts";
import { trlComparisons } from "./trl-comparisons.ts";
import { verlComparisons } from "./verl-comparisons.ts";

export const fidelityFolder = path.resolve(import.meta.dirname, "../../infra/fidelity");
export const batchesFile = path.join(fidelityFolder, "batches/batches.json");

export const OutsidePackage = z.enum(["skyrl", "verl", "trl", "cookbook"]);
export type OutsidePackage = z.infer<typeof OutsidePackage>;
export const outsidePackages = OutsidePackage.options;

export const comparisonsOf: Readonly<Record<OutsidePackage, readonly Comparison[]>> = {
  skyrl: [...skyrlComparisons, ...skyrlExportComparisons],
  verl: [...verlComparisons, ...verlExportComparisons],
  trl: trlComparisons,
  cookbook: cookbookComparisons,
};

/** What of a batch is given to the package in its own shape; null: nothing. */
const exportOf: Readonly<Record<OutsidePackage, ((batch: FidelityBatch) => unknown) | null>> = {
  skyrl: skyrlExport,
  verl: verlExport,
  trl: null,
  cookbook: cookbookExport,
};

export const lockFile = (name: OutsidePackage): string => path.join(fidelityFolder, name, "requirements.lock");
export const goldenFile = (name: OutsidePackage): string => path.join(fidelityFolder, "golden", `${name}.json`);

/** Each batch by name as the package's own input, made by our exporter: JSON. */
export function exportsText(name: OutsidePackage): string {
  const make = exportOf[name];
  const made = make === null ? [] : fidelityBatches().map((batch) => [batch.name, make(batch)] as const);
  return JSON.stringify(Object.fromEntries(made));
}

const hashOf = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex");
export const lockHash = (name: OutsidePackage): string => lockHashOf(lockFile(name));
export const batchesHash = (): string => hashOf(readFileSync(batchesFile));
export const exportsHash = (name: OutsidePackage): string => hashOf(exportsText(name));

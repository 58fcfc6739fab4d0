/**
 * One entry of the list → a repository just before the fix, the fix and its tests as patches. Invariant: what is in the repository
 * when this returns holds nothing of the fix, neither in the tree nor among git's objects.
 */
import { mkdir, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { type FetchScene, unpackDebian } from "./fetch-debian.ts";
import { unpackPypi } from "./fetch-pypi.ts";
import { SourceRepository } from "./repository.ts";
import type { OfflineEntry } from "./set-list.ts";

export interface PreparedTask {
  readonly entry: OfflineEntry;
  /** Holds the repository. */
  readonly folder: string;
  readonly baseCommit: string;
  readonly patch: string;
  readonly testPatch: string;
  /** Files of the test patch that are in the repository, and those that it adds. */
  readonly testFiles: { readonly present: readonly string[]; readonly added: readonly string[] };
}

/** @param folder where the repository goes; what is there is removed */
export async function prepareTask(entry: OfflineEntry, folder: string, scene: FetchScene): Promise<PreparedTask> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(dirname(folder), { recursive: true });
  const { source } = entry;
  const { applyFix } =
    "debian" in source ? await unpackDebian(source, folder, scene) : await unpackPypi(source, folder, scene);
  const repository = await SourceRepository.commit(folder, scene.signal);
  await applyFix();
  const changed = await repository.changedFiles();
  const tests = changed.filter((file) => ("pypi" in source ? source.tests.includes(file) : isTestFile(file)));
  const fixed = changed.filter((file) => !tests.includes(file));
  if (tests.length === 0 || fixed.length === 0) {
    const missing = tests.length === 0 ? "no test" : "nothing but tests";
    throw new InputError([
      { path: `${entry.id}.source`, message: `the fix changes ${missing}: ${changed.join(", ")}` },
    ]);
  }
  const patch = text(await repository.patchOf(fixed), entry.id);
  const testPatch = text(await repository.patchOf(tests), entry.id);
  const present: string[] = [];
  for (const file of tests) if (await repository.has(file)) present.push(file);
  await repository.restore();
  const added = tests.filter((file) => !present.includes(file));
  return { entry, folder, baseCommit: repository.baseCommit, patch, testPatch, testFiles: { present, added } };
}

/** Whether upstream's tests are in it: by its folder or its own name. */
export const isTestFile = (file: string): boolean =>
  /(^|\/)tests\/|^(test|testing)\//.test(file) || /(^|\/)(test_[^/]*|[^/]*_test|conftest)\.py$/.test(file);

/** A row holds patches as text. */
function text(bytes: Buffer, id: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new InputError([{ path: `${id}.source`, message: `the fix is not UTF-8 text: ${String(cause)}` }]);
  }
}

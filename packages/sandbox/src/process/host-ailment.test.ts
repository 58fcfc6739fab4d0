import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hostAilment, hostArchitecture } from "./host-ailment.ts";

const { PATH } = process.env;
let folder: string;
/** The first program that is looked at, as it would be found. */
const bwrapIs = (script: string) => writeFile(join(folder, "bwrap"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rolldeck-ailment-"));
  process.env.PATH = `${folder}:${PATH}`;
});
afterEach(async () => {
  process.env.PATH = PATH;
  await rm(folder, { recursive: true, force: true });
});

test.skipIf(hostArchitecture() === null)("a program that says no is an ailment", async () => {
  await bwrapIs("exit 3");
  expect(await hostAilment()).toMatch("process sandboxes need bwrap");
});

test.skipIf(hostArchitecture() === null)("a machine too busy to answer is none, and is asked again", async () => {
  await bwrapIs("exec sleep 20");
  await expect(hostAilment(100)).rejects.toMatchObject({ boundary: "sandbox", code: "unavailable", retryable: true });
});

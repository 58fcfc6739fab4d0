import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listTemplates, readTemplate } from "./named-templates.ts";

let scratch: string;
let roots: string[];
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "rolldeck-named-"));
  roots = [join(scratch, "absent"), join(scratch, "one"), join(scratch, "two")];
  for (const name of ["one", "two"]) {
    await mkdir(join(scratch, name));
    await writeFile(join(scratch, name, "both.jinja"), name);
  }
  await writeFile(join(scratch, "two", "other-1.2.jinja"), "other");
  await writeFile(join(scratch, "two", ".hidden.jinja"), "hidden");
  await writeFile(join(scratch, "secret.jinja"), "secret");
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

it("lists and reads templates, the first folder first", async () => {
  expect(await listTemplates(roots)).toEqual(["both", "other-1.2"]);
  expect(await readTemplate("both", roots)).toBe("one");
  expect(await readTemplate("other-1.2", roots)).toBe("other");
});
it.each(["", "none", "../secret", "/etc/passwd", ".hidden", "one/../../secret", "a\u0000"])(
  "refuses %j",
  async (name) => {
    await expect(readTemplate(name, roots)).rejects.toThrow(InputError);
  },
);

/**
 * Chat templates by name: `<name>.jinja` under one of the operator's folders, the first one that has it wins. Invariant: a config
 * names a template, never a path.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { InputError } from "@rolldeck/contracts/errors";

const templateName = /^\w[\w.+-]{0,99}$/;
const ending = ".jinja";

/** Names in alphabetical order; a folder that does not exist has none. */
export async function listTemplates(roots: readonly string[]): Promise<string[]> {
  const names = new Set<string>();
  for (const root of roots)
    for (const file of await filesIn(root)) {
      const name = file.slice(0, -ending.length);
      if (file.endsWith(ending) && templateName.test(name)) names.add(name);
    }
  return [...names].sort();
}

/** @throws InputError when no folder has it */
export async function readTemplate(name: string, roots: readonly string[]): Promise<string> {
  if (!templateName.test(name)) throw unknown(name, []);
  for (const root of roots) {
    const text = await ifThere(() => readFile(join(root, name + ending), "utf8"));
    if (text !== null) return text;
  }
  throw unknown(name, await listTemplates(roots));
}

const unknown = (name: string, names: readonly string[]): InputError =>
  new InputError([
    {
      path: "model.chatTemplate",
      message: `no chat template "${name.slice(0, 100)}"${names.length > 0 ? `; this server has: ${names.join(", ")}` : ""}`,
    },
  ]);

const filesIn = async (folder: string): Promise<string[]> => (await ifThere(() => readdir(folder))) ?? [];

async function ifThere<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && (cause.code === "ENOENT" || cause.code === "ENOTDIR")) return null;
    throw cause;
  }
}

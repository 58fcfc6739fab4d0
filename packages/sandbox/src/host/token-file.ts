/** Reads a token from a file that is its owner's alone: the token and nothing else, or a line of the sandbox server's own file. */
import { readFile, stat } from "node:fs/promises";
import { InputError } from "@rolldeck/contracts/errors";

/** @throws InputError that says what is wrong with the file, never what is in it */
export async function readToken(file: string, kind: "client" | "host"): Promise<string> {
  const bad = (message: string, fix?: string): InputError => new InputError([{ path: file, message, fix }]);
  const found = await stat(file).catch((cause: unknown) => {
    throw bad(`can't be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  });
  if ((found.mode & 0o077) !== 0) throw bad("can be read by others", `chmod 600 ${file}`);
  const lines = (await readFile(file, "utf8"))
    .split("\n")
    .filter((line) => line.trim() !== "" && !line.startsWith("#"));
  for (const line of lines) {
    const words = line.trim().split(/\s+/);
    if (words.length === 2 && words[0] === kind && words[1] !== undefined) return words[1];
  }
  const [only] = lines;
  if (lines.length === 1 && only !== undefined && !/\s/.test(only.trim())) return only.trim();
  throw bad(`holds no ${kind} token`);
}

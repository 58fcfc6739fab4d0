/**
 * The owner token: whoever can read this file owns the server. Made once, mode 0600, never printed, never in arguments; every
 * process on the machine that runs as the same user can sign in with it, and nobody else.
 */
import { chmod, mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { newSecret } from "@rolldeck/db/auth/secret-text";

export const ownerTokenFile = (dataFolder: string): string => join(dataFolder, "owner-token");

/** Reads the token, making it first when there is none. Safe when several processes start at once. */
export async function ensureOwnerToken(dataFolder: string): Promise<string> {
  await mkdir(dataFolder, { recursive: true });
  const file = ownerTokenFile(dataFolder);
  try {
    const handle = await open(file, "wx", 0o600);
    try {
      await handle.writeFile(`${newSecret("rdo_")}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  }
  await chmod(file, 0o600);
  return readToken(file);
}

/** Another process may be between making the file and writing it. */
async function readToken(file: string): Promise<string> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const token = (await readFile(file, "utf8")).trim();
    if (token.length >= 32) return token;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`the owner token in ${file} is not usable: remove the file and start again`);
}

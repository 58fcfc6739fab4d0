/**
 * Who may do what: `client` tokens open and use sandboxes, `host` tokens join hosts; neither does the other's. The file has one a
 * line, `client <token>` or `host <token>`, and is its owner's alone. Invariant: comparing takes the same time for every token.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { InputError } from "@rolldeck/contracts/errors";

export type TokenKind = "client" | "host";

interface Known {
  readonly kind: TokenKind;
  readonly hash: Buffer;
}

export class Tokens {
  readonly #hashes: readonly Known[];

  /** @throws InputError that names the line, never what is on it */
  static parse(text: string, source: string): Tokens {
    const hashes: Known[] = [];
    for (const [index, line] of text.split("\n").entries()) {
      if (line.trim() === "" || line.trimStart().startsWith("#")) continue;
      const [kind, token, ...more] = line.trim().split(/\s+/);
      if ((kind !== "client" && kind !== "host") || token === undefined || token.length < 16 || more.length > 0) {
        const message = `line ${index + 1} is not \`client\` or \`host\` and a token of at least 16 characters`;
        throw new InputError([{ path: source, message }]);
      }
      hashes.push({ kind, hash: hashOf(token) });
    }
    for (const kind of ["client", "host"] as const) {
      if (!hashes.some((known) => known.kind === kind)) {
        throw new InputError([{ path: source, message: `has no ${kind} token` }]);
      }
    }
    return new Tokens(hashes);
  }

  private constructor(hashes: readonly Known[]) {
    this.#hashes = hashes;
  }

  /** Of an `Authorization` header; null: no token of ours. */
  kindOf(authorization: string | undefined): TokenKind | null {
    const [, token] = /^Bearer (\S+)$/.exec(authorization ?? "") ?? [];
    const asked = hashOf(token ?? "");
    let kind: TokenKind | null = null;
    // All of them, whichever it is.
    for (const known of this.#hashes) if (timingSafeEqual(known.hash, asked)) kind = known.kind;
    return kind;
  }
}

const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();

/** Reads the file; makes one with a token of each kind where there is none. @throws InputError when others may read it */
export function loadTokens(file: string): { readonly tokens: Tokens; readonly made: boolean } {
  const made = makeTokens(file);
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new InputError([{ path: file, message: "can be read by others", fix: `chmod 600 ${file}` }]);
  }
  return { tokens: Tokens.parse(readFileSync(file, "utf8"), file), made };
}

function makeTokens(file: string): boolean {
  const token = (prefix: string): string => `${prefix}_${randomBytes(24).toString("base64url")}`;
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  try {
    writeFileSync(file, `client ${token("rsc")}\nhost ${token("rsh")}\n`, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
  chmodSync(file, 0o600);
  return true;
}

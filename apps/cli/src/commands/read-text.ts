import { readFileSync } from "node:fs";
import { CommandFailure } from "./command-failure.ts";

/** A file that a person names. @param file - for standard input @throws CommandFailure that names it */
export function readText(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandFailure(`${file} can't be read: ${why}`, { cause });
  }
}

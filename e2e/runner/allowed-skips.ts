/** Skips that CI accepts, each with its reason. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";

const AllowedSkips = z.record(z.string(), z.string().min(10));

export const readAllowedSkips = (): Record<string, string> =>
  AllowedSkips.parse(JSON.parse(readFileSync(path.join(import.meta.dirname, "../allowed-skips.json"), "utf8")));

/**
 * Runs `e2e/bench/<name>.ts`. Progress goes to stderr; the last line on stdout is one JSON object with the benchmark's keys.
 */
import { readdirSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";

const folder = path.join(import.meta.dirname, "../bench");
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.slice(0, -3))
  .sort();
const [name, ...flags] = process.argv.slice(2);

if (name === undefined || !names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- <name> [flags]\nnames: ${names.join(", ")}\n`);
  process.exit(2);
}

const Bench = z.object({
  run: z.custom<(args: string[], progress: (line: string) => void) => Promise<object>>(
    (value) => typeof value === "function",
  ),
});
const bench = Bench.parse({ ...(await import(pathToFileURL(path.join(folder, `${name}.ts`)).href)) });
const started = Date.now();
const result = await bench.run(flags, (line) =>
  process.stderr.write(`[${((Date.now() - started) / 1000).toFixed(1)} s] ${line}\n`),
);
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);

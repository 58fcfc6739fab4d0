/**
 * Plain Node, no dependencies: makes a fresh clone usable. Installs the npm packages when they are missing or older than the
 * lock file, and generates the database client. Used by `npm start`, `npm test` and `npm run bench`.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

const minimum = [20, 19];

/** Ends the process with a sentence that says what to do. */
function fail(message) {
  process.stderr.write(`rolldeck: ${message}\n`);
  process.exit(1);
}

export function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < minimum[0] || (major === minimum[0] && minor < minimum[1])) {
    fail(`Node ${process.versions.node} is too old: install Node ${minimum.join(".")} or newer, then run this again.`);
  }
}

const hashOf = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");

function run(command, args, env, what, fix) {
  const result = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } });
  if (result.error) fail(`${what} failed: ${result.error.message}. ${fix}`);
  if (result.status !== 0) fail(`${what} failed (exit ${result.status}). ${fix}`);
}

/** Installs npm packages if the lock file changed since the last install, then generates the Prisma client if its schema did. */
export function ensureInstalled() {
  checkNode();
  const modules = path.join(root, "node_modules");
  const lockMark = path.join(modules, ".rolldeck-lock");
  const lock = hashOf(path.join(root, "package-lock.json"));
  if (!existsSync(lockMark) || readFileSync(lockMark, "utf8") !== lock) {
    process.stderr.write("rolldeck: installing npm packages (about a minute the first time)\n");
    // A fresh clone gets exactly the lock file; a clone whose lock file changed is brought up to it in place.
    const verb = existsSync(modules) ? "install" : "ci";
    run(
      "npm",
      [verb, "--no-audit", "--no-fund", "--loglevel=error"],
      { CI: "" },
      `npm ${verb}`,
      "Check the network and your npm registry settings, then run this again.",
    );
    mkdirSync(modules, { recursive: true });
    writeFileSync(lockMark, lock);
  }
  generateClient(modules);
}

function generateClient(modules) {
  const schema = path.join(root, "prisma/schema.prisma");
  const generated = path.join(root, "packages/db/src/generated");
  const mark = path.join(modules, ".rolldeck-prisma");
  const hash = hashOf(schema);
  if (existsSync(generated) && existsSync(mark) && readFileSync(mark, "utf8") === hash) return;
  run(
    process.execPath,
    [path.join(modules, "prisma/build/index.js"), "generate"],
    // The client needs no native engine; pointing at a no-op keeps the generator from looking for a download.
    { PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true", CHECKPOINT_DISABLE: "1", PRISMA_HIDE_UPDATE_MESSAGE: "1" },
    "prisma generate",
    "Run `npx prisma validate` to see what is wrong with prisma/schema.prisma.",
  );
  writeFileSync(mark, hash);
}

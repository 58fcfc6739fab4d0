import { defineConfig } from "vitest/config";

// One project for every package: tests sit beside the code. Suites that need a server start their own on a free port.
export default defineConfig({
  test: {
    include: [
      "packages/**/*.test.ts",
      "apps/{api,worker,cli,sandbox-server}/**/*.test.ts",
      "apps/web/**/*.test.{ts,tsx}",
      "e2e/{runner,fidelity}/*.test.ts",
    ],
    // Those open sandboxes by the dozen, most of them in a Docker daemon: e2e/docker.vitest.config.ts runs them.
    exclude: ["**/node_modules/**", "**/.next/**", "**/*.{docker,sandbox}.test.ts"],
    setupFiles: ["e2e/runner/property-seed.ts"],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    // A file's modules and its Postgres serve the next file too: starting them anew for each took longer than many files' tests.
    isolate: false,
    passWithNoTests: true,
  },
});

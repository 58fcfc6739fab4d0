import { defineConfig } from "vitest/config";

// One project for every package: tests sit beside the code. Suites that need a server start their own on a free port.
export default defineConfig({
  test: {
    include: ["packages/**/*.test.ts", "apps/{api,worker,cli}/**/*.test.ts", "apps/web/**/*.test.{ts,tsx}"],
    exclude: ["**/node_modules/**", "**/.next/**"],
    testTimeout: 90_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    passWithNoTests: true,
  },
});

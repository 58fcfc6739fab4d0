import { defineConfig } from "vitest/config";

// Whole-stack suites: each starts processes of its own, so files run one after the other.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    exclude: ["**/node_modules/**"],
    fileParallelism: false,
    maxWorkers: 1,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    passWithNoTests: true,
  },
});

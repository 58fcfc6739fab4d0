import { defineConfig } from "vitest/config";

// Whole-stack suites. Each file starts processes of its own on free ports and mostly waits for them, so two run at a time.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    exclude: ["**/node_modules/**", "e2e/runner/**"],
    maxWorkers: 2,
    testTimeout: 180_000,
    hookTimeout: 120_000,
    passWithNoTests: true,
  },
});

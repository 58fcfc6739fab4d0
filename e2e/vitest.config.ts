import { defineConfig } from "vitest/config";
import { longFirst } from "./long-first.ts";

// Whole-stack suites. Each file starts processes of its own on free ports and mostly waits for them, so two run at a time.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    exclude: ["**/node_modules/**", "e2e/{runner,fidelity}/**"],
    maxWorkers: 2,
    // The one that computes beside one that waits.
    sequence: { sequencer: longFirst(["replay", "commands", "kill"].map((name) => `e2e/real/${name}.test.ts`)) },
    // A file may have to share its cores with another one that computes.
    testTimeout: 300_000,
    hookTimeout: 240_000,
    passWithNoTests: true,
  },
});

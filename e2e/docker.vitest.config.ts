import { defineConfig } from "vitest/config";

// Tests that open sandboxes in a real Docker daemon. One daemon and one base image for all of them, made by the setup.
export default defineConfig({
  test: {
    include: ["packages/**/*.{docker,sandbox}.test.ts", "apps/**/*.{docker,sandbox}.test.ts"],
    exclude: ["**/node_modules/**", "**/.next/**"],
    setupFiles: ["e2e/runner/property-seed.ts"],
    globalSetup: ["packages/sandbox/testing/docker-setup.ts"],
    testTimeout: 120_000,
    hookTimeout: 180_000,
    maxWorkers: 2,
    passWithNoTests: true,
  },
});

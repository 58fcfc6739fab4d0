import { expect, test } from "vitest";
import { BoundaryError } from "../errors.ts";
import { isLastingSandboxFailure } from "./sandbox.ts";

test.each([
  ["an image that is nowhere", new BoundaryError("sandbox", "no_image", "x"), true],
  ["a runtime that can't", new BoundaryError("sandbox", "refused", "x"), true],
  ["a registry that is busy", new BoundaryError("sandbox", "no_image", "x", { retryable: true }), false],
  ["a sandbox that went away", new BoundaryError("sandbox", "gone", "x"), false],
  ["a daemon that is away", new BoundaryError("sandbox", "unavailable", "x", { retryable: true }), false],
  ["a tool that refuses", new BoundaryError("tool", "refused", "x"), false],
  ["no error of ours", new Error("refused"), false],
])("asking again for a sandbox is useless or not: %s", (_what, error, lasting) => {
  expect(isLastingSandboxFailure(error)).toBe(lasting);
});

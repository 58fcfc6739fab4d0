/** What programs complain of when a file can't be read or written, in the words of the port. */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { SandboxFileError } from "@rolldeck/contracts/ports/sandbox";
import { expect, test } from "vitest";
import { fileTrouble } from "./file-trouble.ts";

test.each([
  ["mv: cannot move '/etc/.rolldeck-1-a.part' to '/etc/hostname': Device or resource busy", "denied"],
  ["sh: 12: cannot create /proc/sys/x: Permission denied", "denied"],
  ["cat: write error: No space left on device", "no_space"],
  ["mv: cannot stat '/w/xxx': File name too long", "bad_path"],
])("%s", (complaint, code) => {
  const trouble = fileTrouble("/a", 1, complaint);
  expect(trouble).toBeInstanceOf(SandboxFileError);
  expect(trouble).toMatchObject({ code });
});

test("what is said of no file is no file's trouble", () => {
  const trouble = fileTrouble("/a", 2, "sh: 12: Cannot fork");
  expect(trouble).toBeInstanceOf(BoundaryError);
  expect(trouble).toMatchObject({ boundary: "sandbox", code: "unavailable", retryable: false });
});

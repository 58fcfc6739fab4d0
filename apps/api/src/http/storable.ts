/** Text that Postgres cannot keep is refused at the door, with the path of its field: NUL, and halves of surrogate pairs. */
import type { InputIssue } from "@rolldeck/contracts/errors";
import { InputError } from "@rolldeck/contracts/errors";
import { fieldPath } from "../problems.ts";

const unstorable = /\0|\p{Surrogate}/u;
const maxIssues = 10;

/** @param value parsed JSON, so it has no cycles; its depth was limited before. @throws InputError */
export function refuseUnstorable(value: unknown): void {
  const issues: InputIssue[] = [];
  collect(value, [], issues);
  if (issues.length > 0) throw new InputError(issues);
}

function collect(value: unknown, path: readonly PropertyKey[], issues: InputIssue[]): void {
  if (issues.length >= maxIssues) return;
  if (typeof value === "string") {
    if (unstorable.test(value))
      issues.push({ path: fieldPath(path), message: "must not contain NUL or broken surrogates" });
  } else if (Array.isArray(value)) for (const [index, item] of value.entries()) collect(item, [...path, index], issues);
  else if (typeof value === "object" && value !== null)
    for (const [key, item] of Object.entries(value)) {
      if (unstorable.test(key))
        issues.push({ path: fieldPath(path), message: "has a key with NUL or broken surrogates" });
      else collect(item, [...path, key], issues);
    }
}

/** A task set's options against the task's own schema; what does not fit is named by its key. */
import { InputError } from "@rolldeck/contracts/errors";
import type { JsonObject } from "@rolldeck/contracts/segments";
import type { z } from "zod";

/** @throws InputError at `options.<key>`; an unknown key is told the keys there are */
export function parseOptions<S extends z.ZodObject>(schema: S, options: JsonObject): z.output<S> {
  const known = Object.keys(schema.shape);
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  const parsed = schema.safeParse(Object.fromEntries(Object.entries(options).filter(([key]) => known.includes(key))));
  const wrong = parsed.success ? [] : parsed.error.issues.map(({ path, message }) => ({ path: pathOf(path), message }));
  const strange = unknown.map((key) => ({
    path: pathOf([key.slice(0, 60)]),
    message: "no such option",
    fix: known.length === 0 ? "the task has no options" : `options: ${known.join(", ")}`,
  }));
  if (!parsed.success || strange.length > 0) throw new InputError([...strange, ...wrong]);
  return parsed.data;
}

const pathOf = (path: readonly PropertyKey[]): string => ["options", ...path.map(String)].join(".");

/** For tasks that make their own instances. @throws InputError when a data set is named */
export function refuseDataset(dataset: string | null): void {
  if (dataset !== null) {
    throw new InputError([{ path: "dataset", message: "the task makes its own instances", fix: "leave it out" }]);
  }
}

import type { Split, TaskInstance } from "@rolldeck/contracts/ports/task";
import type { JsonObject } from "@rolldeck/contracts/segments";
import type { Dataset } from "./open-dataset.ts";

/**
 * The instance of a row. Its name is known at once; the row is read when its state is asked for: a planner that wants names
 * does not wait for files. @throws RangeError past the end
 */
export function rowInstance<R>(
  rows: Dataset<R>,
  { split, index }: { readonly split: Split; readonly index: number },
  stateOf: (row: R) => JsonObject,
): TaskInstance {
  if (!Number.isSafeInteger(index) || index < 0 || index >= rows.size(split)) {
    throw new RangeError(`the data set has ${rows.size(split)} ${split} rows, not ${index}`);
  }
  let state: JsonObject | null = null;
  return {
    instanceId: rows.instanceId(split, index),
    split,
    index,
    get state() {
      state ??= stateOf(rows.row(split, index));
      return state;
    },
  };
}

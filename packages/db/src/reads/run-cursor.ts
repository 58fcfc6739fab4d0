/** The run list's opaque cursor: where the page ended, for one sort order. Pure. */
import { runSorts } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { decodeCursor, encodeCursor } from "./page-cursor.ts";

const RunCursor = z.tuple([
  z.enum(runSorts),
  z.boolean(),
  /** The sort value as text; null sorts last. */
  z
    .string()
    .max(400)
    .regex(/^[^\0]*$/u)
    .nullable(),
  z.string().regex(/^[0-9a-z]{1,40}$/),
]);
export type RunCursor = z.infer<typeof RunCursor>;

export const encodeRunCursor = (cursor: RunCursor): string => encodeCursor(cursor);

/** @throws InputError when it is not one of ours or belongs to another sort order. */
export function decodeRunCursor(text: string, sort: RunCursor[0], descending: boolean): RunCursor {
  const cursor = decodeCursor(RunCursor, text);
  if (cursor[0] !== sort || cursor[1] !== descending)
    throw new InputError([
      { path: "cursor", message: "belongs to another sort order", fix: "start again without a cursor" },
    ]);
  return cursor;
}

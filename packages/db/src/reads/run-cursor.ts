/** The run list's opaque cursor: where the page ended, for one sort order. Pure. */
import { runSorts } from "@rolldeck/contracts/api/runs";
import { InputError } from "@rolldeck/contracts/errors";
import { z } from "zod";

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

export const encodeRunCursor = (cursor: RunCursor): string => Buffer.from(JSON.stringify(cursor)).toString("base64url");

/** @throws InputError when it is not one of ours or belongs to another sort order. */
export function decodeRunCursor(text: string, sort: RunCursor[0], descending: boolean): RunCursor {
  const parsed = RunCursor.safeParse(parseJson(Buffer.from(text, "base64url").toString()));
  if (!parsed.success)
    throw new InputError([{ path: "cursor", message: "not a cursor of this list", fix: "leave it out for page one" }]);
  if (parsed.data[0] !== sort || parsed.data[1] !== descending)
    throw new InputError([
      { path: "cursor", message: "belongs to another sort order", fix: "start again without a cursor" },
    ]);
  return parsed.data;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

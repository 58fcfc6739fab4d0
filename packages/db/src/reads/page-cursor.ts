/** Opaque cursors of lists: where a page ended. Pure. */
import { InputError } from "@rolldeck/contracts/errors";
import { jsonOrUndefined } from "@rolldeck/contracts/json-or-undefined";
import type { z } from "zod";

export const encodeCursor = (place: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(place)).toString("base64url");

/** @throws InputError when it is not one of this list's */
export function decodeCursor<T extends z.ZodType>(schema: T, text: string): z.output<T> {
  const parsed = schema.safeParse(jsonOrUndefined(Buffer.from(text, "base64url").toString()));
  if (parsed.success) return parsed.data;
  throw new InputError([{ path: "cursor", message: "not a cursor of this list", fix: "leave it out for page one" }]);
}

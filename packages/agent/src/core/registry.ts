/** Every way a model may write its calls. Add one: a file in dialects/ and a line here. */
import type { Dialect } from "@rolldeck/contracts/ports/dialect";
import { hermes } from "./dialects/hermes.ts";
import { openai } from "./dialects/openai.ts";
import { pythonic } from "./dialects/pythonic.ts";

export const dialects = { pythonic, hermes, openai } satisfies Record<string, Dialect>;
export type DialectName = keyof typeof dialects;

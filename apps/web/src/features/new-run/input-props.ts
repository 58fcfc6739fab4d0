/** What every input of the form takes, and how its box looks. */
import type { Field } from "./config-fields.ts";

export const inputClass =
  "h-8 w-full min-w-0 rounded-md border border-g4 bg-g0 px-2 text-g9 placeholder:font-sans placeholder:text-g7 hover:border-g5 focus:border-accent aria-[invalid=true]:border-failed disabled:bg-g2 disabled:text-g7";

export interface InputProps {
  readonly id: string;
  readonly field: Field;
  /** What the text sets; undefined = left to the default. */
  readonly value: unknown;
  readonly onChange: (value: unknown) => void;
  readonly invalid: boolean;
  readonly disabled: boolean;
  readonly describedBy: string;
  /** Names from the server's catalogue, when this field names one. */
  readonly options: readonly string[] | null;
  /** What a field has that is left alone, in words. */
  readonly unset: string;
}

import { InputError } from "@rolldeck/contracts/errors";

/** Bytes of one row; a longer one is refused before it is held. */
export const maxRowBytes = 32 * 1024 * 1024;

export const badRow = (message: string): InputError => new InputError([{ path: "dataset", message }]);

import type { JsonObject } from "@rolldeck/contracts/segments";

/** A call that has ended. */
export interface EndedCall {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly failed: boolean;
}

/** What goes between a process and its index threads. Both are ours, so the types are the check. */
import type { Needed } from "./index-host.ts";
import type { SearchRequest } from "./search-request.ts";

export type ThreadTask =
  | { readonly kind: "refresh"; readonly id: string; readonly listing: Uint8Array }
  | {
      readonly kind: "open";
      readonly id: string;
      readonly root: string;
      readonly listing: Uint8Array;
      readonly hashes: Uint8Array;
    }
  | { readonly kind: "supply"; readonly id: string; readonly tar: Uint8Array }
  | { readonly kind: "settle"; readonly id: string }
  | { readonly kind: "search"; readonly id: string; readonly request: SearchRequest };

/** What each task gives. */
export interface ThreadResults {
  readonly refresh: Needed | null;
  readonly open: Needed;
  readonly supply: undefined;
  readonly settle: undefined;
  readonly search: string;
}

export type ToThread =
  | { readonly call: number; readonly task: ThreadTask }
  /** What that call is still looking for is not wanted any more. */
  | { readonly stop: number };
export interface FromThread {
  readonly call: number;
  readonly value?: ThreadResults[keyof ThreadResults];
  /** Present when it failed. */
  readonly error?: string;
}

/** What the benchmark prints; `../search.ts` says what each number means. */
export interface SearchResult {
  readonly files: number;
  readonly indexS: number;
  readonly reindexMs: number;
  readonly queryP95Ms: number;
  readonly patternP95Ms: number;
  readonly patternLiteralP95Ms: number;
  readonly queries: number;
  readonly recallAt5: number;
  readonly grepRecallAt5: number;
  readonly heldOutRecallAt5: number;
  /** By package. */
  readonly heldOut: Readonly<Record<string, { readonly queries: number; readonly recallAt5: number }>>;
}

/**
 * Whether a query of a run's page may ask: a page that stands still asks nothing again, but what a tab opened on it has not read yet, it
 * reads once. Pure.
 */
export const unlessFrozen =
  (frozen: boolean) =>
  ({ state }: { readonly state: { readonly data?: unknown } }): boolean =>
    !frozen || state.data === undefined;

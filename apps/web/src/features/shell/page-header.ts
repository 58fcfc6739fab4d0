"use client";
/** What the top bar and the palette know of the page shown: its breadcrumb and the actions it offers. */
import { useEffect, useSyncExternalStore } from "react";

export interface Crumb {
  readonly label: string;
  readonly href?: string;
}
export interface PageAction {
  readonly label: string;
  run(): void;
}
interface Page {
  readonly crumbs: readonly Crumb[];
  readonly actions: readonly PageAction[];
}

const empty: Page = { crumbs: [], actions: [] };
let page: Page = empty;
const listeners = new Set<() => void>();
function setPage(next: Page): void {
  page = next;
  for (const listener of listeners) listener();
}

export const usePage = (): Page =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => page,
    () => empty,
  );

/** Says where we are; also the document's title. */
export function useCrumbs(crumbs: readonly Crumb[]): void {
  const shape = crumbs.map((crumb) => `${crumb.label}\u0000${crumb.href ?? ""}`).join("\u0001");
  useEffect(() => {
    const parsed = shape.split("\u0001").map((part): Crumb => {
      const [label = "", href = ""] = part.split("\u0000");
      return href ? { label, href } : { label };
    });
    setPage({ ...page, crumbs: parsed });
    document.title = `${parsed
      .map((crumb) => crumb.label)
      .toReversed()
      .join(" · ")} — Rolldeck`;
  }, [shape]);
}

/** Offers actions in the palette while mounted. Pass a stable array. */
export function useActions(actions: readonly PageAction[]): void {
  useEffect(() => {
    setPage({ ...page, actions });
    return () => setPage({ ...page, actions: [] });
  }, [actions]);
}

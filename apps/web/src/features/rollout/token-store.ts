"use client";
/** Tokens of an attempt by index, fetched in aligned pages of 16,384; a token not here yet is null. */
import type { TokenPage } from "@rolldeck/contracts/api/rollouts";
import { maxTokenPage } from "@rolldeck/contracts/api/rollouts";
import type { MaskReason } from "@rolldeck/contracts/endings";
import type { SegmentOrigin } from "@rolldeck/contracts/segments";
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";
import type { z } from "zod";
import { useTRPC } from "../../api/query-provider.tsx";

type Page = z.infer<typeof TokenPage>;

export interface Token {
  readonly index: number;
  readonly id: number;
  readonly text: string;
  readonly origin: SegmentOrigin;
  readonly turn: number;
  readonly logprob: number | null;
  readonly trainerLogprob: number | null;
  readonly advantage: number | null;
  readonly maskReason: MaskReason | null;
  readonly policyVersion: number | null;
}

export class TokenStore {
  readonly #pages: readonly (Page | undefined)[];
  readonly total: number;
  constructor(pages: readonly (Page | undefined)[], total: number) {
    this.#pages = pages;
    this.total = total;
  }
  at(index: number): Token | null {
    const page = this.#pages[Math.floor(index / maxTokenPage)];
    const offset = index % maxTokenPage;
    const id = page?.ids[offset];
    if (!page || id === undefined) return null;
    return {
      index,
      id,
      text: page.texts[offset] ?? "",
      origin: page.origins[offset] ?? "template",
      turn: page.turns[offset] ?? 0,
      logprob: page.logprobs[offset] ?? null,
      trainerLogprob: page.trainerLogprobs[offset] ?? null,
      advantage: page.advantages[offset] ?? null,
      maskReason: page.maskReasons[offset] ?? null,
      policyVersion: page.policyVersions[offset] ?? null,
    };
  }
}

export function useTokenStore(rolloutId: string, attempt: number | undefined, total: number, enabled: boolean) {
  const trpc = useTRPC();
  const count = enabled ? Math.ceil(total / maxTokenPage) : 0;
  const pages = useQueries({
    queries: Array.from({ length: count }, (_, page) =>
      trpc.rollouts.tokens.queryOptions(
        { rolloutId, attempt, start: page * maxTokenPage, end: (page + 1) * maxTokenPage },
        // A page that is full never changes but for annotations; the last one grows with the rollout.
        { staleTime: 10_000, placeholderData: (known) => known },
      ),
    ),
    combine: (results) => ({
      pages: results.map((result) => result.data),
      error: results.find((result) => result.error)?.error ?? null,
      loading: results.some((result) => result.isPending),
    }),
  });
  const store = useMemo(() => {
    const known = pages.pages.reduce((most, page) => Math.max(most, page?.total ?? 0), 0);
    return new TokenStore(pages.pages, Math.max(known, enabled ? total : 0));
  }, [pages.pages, total, enabled]);
  return { store, error: pages.error, loading: pages.loading };
}

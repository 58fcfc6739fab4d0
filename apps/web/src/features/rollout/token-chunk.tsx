"use client";
import { type JSX, memo } from "react";
import { join } from "../../design/join.ts";
import { originColour, type TokenMode, tokenBackground, visibleText } from "./token-colour.ts";
import type { TokenStore } from "./token-store.ts";

/** One row of token spans. Masked tokens are hatched and dimmed; the line under a token says where it came from. */
export const TokenChunk = memo(function TokenChunk({
  store,
  start,
  end,
  mode,
  largestAdvantage,
  selectedFrom,
  selectedTo,
}: {
  store: TokenStore;
  start: number;
  end: number;
  mode: TokenMode;
  largestAdvantage: number;
  /** Included ends of the selection; −1 when none of it is in this chunk. */
  selectedFrom: number;
  selectedTo: number;
}): JSX.Element {
  const spans: JSX.Element[] = [];
  for (let index = start; index < end; index += 1) {
    const token = store.at(index);
    if (!token) {
      spans.push(<span key={index} className="mx-px inline-block h-[14px] w-3 rounded-[2px] bg-g2 align-middle" />);
      continue;
    }
    const masked = token.maskReason !== null || token.origin !== "sampled";
    const selected = index >= selectedFrom && index <= selectedTo;
    spans.push(
      <span
        key={index}
        data-token={index}
        className={join(
          "relative border-b-2 shadow-[inset_-1px_0_0_var(--g0)]",
          masked && "hatched",
          selected && "outline-2 outline-accent",
        )}
        style={{
          backgroundColor: tokenBackground(token, mode, largestAdvantage),
          borderBottomColor: `color-mix(in srgb, ${originColour(token)} ${masked ? 45 : 100}%, transparent)`,
          color: masked ? "var(--g7)" : undefined,
        }}
      >
        {visibleText(token.text)}
      </span>,
    );
  }
  return <div className="mono px-4 pb-1 text-base leading-6 whitespace-pre-wrap [overflow-wrap:anywhere]">{spans}</div>;
});

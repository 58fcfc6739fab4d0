"use client";
import { maskWords } from "@rolldeck/contracts/mask-words";
import type { JSX } from "react";
import { Facts } from "../../design/facts.tsx";
import { formatNumber } from "../../format/numbers.ts";
import { ratio, visibleText } from "./token-colour.ts";
import type { Token } from "./token-store.ts";

export const maskText = (token: Token): string =>
  token.maskReason ? maskWords[token.maskReason] : token.origin === "sampled" ? "trained" : "not sampled";

export function TokenFacts({ token }: { token: Token }): JSX.Element {
  const number = (value: number | null) => <span className="num">{formatNumber(value)}</span>;
  return (
    <Facts
      rows={[
        [
          "Text",
          <span key="text" className="mono bg-g2 px-1 whitespace-pre-wrap">
            {visibleText(token.text)}
          </span>,
        ],
        [
          "Token",
          <span key="token" className="num">
            {token.index} · id {token.id}
          </span>,
        ],
        ["Origin", token.origin],
        ["Sampler log-prob", number(token.logprob)],
        ["Trainer log-prob", number(token.trainerLogprob)],
        ["Ratio", number(ratio(token))],
        ["Advantage", number(token.advantage)],
        ["Mask", maskText(token)],
        [
          "Version",
          <span key="version" className="num">
            {token.policyVersion ?? "n/a"}
          </span>,
        ],
      ]}
    />
  );
}

export function TokenTooltip({ token, x, y }: { token: Token; x: number; y: number }): JSX.Element {
  const left = Math.min(x + 12, (typeof window === "undefined" ? 1280 : window.innerWidth) - 296);
  const above = typeof window !== "undefined" && y > window.innerHeight - 250;
  return (
    <div
      role="tooltip"
      className="pointer-events-none fixed z-50 w-[280px] rounded-md border border-g4 bg-g0 p-2.5 shadow-float"
      style={{ left, ...(above ? { bottom: window.innerHeight - y + 14 } : { top: y + 16 }) }}
    >
      <TokenFacts token={token} />
    </div>
  );
}

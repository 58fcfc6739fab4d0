/** How a token's number becomes colour. Pure: strengths from −1 to 1; the sign picks the end of a diverging scale. */
import type { Token } from "./token-store.ts";

export const tokenModes = ["logprob", "gap", "advantage", "origin"] as const;
export type TokenMode = (typeof tokenModes)[number];
export const modeLabels: Record<TokenMode, { readonly label: string; readonly title: string }> = {
  logprob: { label: "Log-prob", title: "How unlikely the policy found the token it sampled: light = likely" },
  gap: { label: "Gap", title: "|trainer log-prob − sampler log-prob|" },
  advantage: { label: "Advantage", title: "What training pushed: orange down, blue up" },
  origin: { label: "Origin", title: "Template, observation, hint or sampled" },
};

/** −log p at which the colour is full: e^−5 < 1 %. */
const fullSurprise = 5;
/** A gap of 0.01 nats is far beyond what equal weights may differ by. */
const fullGap = 0.01;

export const ratio = (token: Token): number | null =>
  token.logprob === null || token.trainerLogprob === null ? null : Math.exp(token.trainerLogprob - token.logprob);

export const gap = (token: Token): number | null =>
  token.logprob === null || token.trainerLogprob === null ? null : Math.abs(token.trainerLogprob - token.logprob);

/** 0…1 for sequential modes, −1…1 for advantage, null when there is nothing to show. */
export function tokenStrength(token: Token, mode: TokenMode, largestAdvantage: number): number | null {
  if (mode === "logprob")
    return token.logprob === null ? null : Math.min(1, Math.max(0, -token.logprob / fullSurprise));
  if (mode === "gap") {
    const value = gap(token);
    return value === null ? null : Math.min(1, value / fullGap);
  }
  if (mode === "advantage") {
    if (token.advantage === null || largestAdvantage <= 0) return null;
    return Math.max(-1, Math.min(1, token.advantage / largestAdvantage));
  }
  return null;
}

export const originColour = (token: Token): string => `var(--origin-${token.origin})`;

/** Background of a token as CSS over the theme's colours. */
export function tokenBackground(token: Token, mode: TokenMode, largestAdvantage: number): string | undefined {
  if (mode === "origin") return `color-mix(in oklab, ${originColour(token)} 22%, transparent)`;
  const strength = tokenStrength(token, mode, largestAdvantage);
  if (strength === null || Math.abs(strength) < 0.01) return undefined;
  const end = mode === "advantage" ? (strength < 0 ? "var(--reward-low)" : "var(--reward-high)") : "var(--seq-high)";
  return `color-mix(in oklab, ${end} ${Math.round(Math.abs(strength) * 62)}%, transparent)`;
}

/** What is drawn for characters that have no width of their own. */
export const visibleText = (text: string): string =>
  text.replaceAll("\n", "↵\n").replaceAll("\t", "→\t").replaceAll("\r", "␍").replaceAll("\0", "␀") || "∅";

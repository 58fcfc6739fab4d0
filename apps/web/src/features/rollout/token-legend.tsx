import type { JSX } from "react";
import type { TokenMode } from "./token-colour.ts";

const ramp = (colour: string, strength: number) =>
  `color-mix(in oklab, ${colour} ${Math.round(strength * 62)}%, transparent)`;

/** What the colours and the hatching mean. */
export function TokenLegend({ mode }: { mode: TokenMode }): JSX.Element {
  const swatches =
    mode === "advantage"
      ? [-1, -0.5, 0, 0.5, 1].map((at) => ramp(at < 0 ? "var(--reward-low)" : "var(--reward-high)", Math.abs(at)))
      : [0, 0.25, 0.5, 0.75, 1].map((at) => ramp("var(--seq-high)", at));
  const ends: Record<TokenMode, readonly [string, string]> = {
    logprob: ["likely", "p < 1 %"],
    gap: ["0", "0.01 nats"],
    advantage: ["pushed down", "up"],
    origin: ["", ""],
  };
  return (
    <div className="flex h-6 items-end gap-3 px-4 text-xs whitespace-nowrap text-g7">
      {mode === "origin" ? (
        (["sampled", "observation", "template", "hint"] as const).map((origin) => (
          <span key={origin} className="inline-flex items-center gap-1">
            <span className="h-[3px] w-3" style={{ background: `var(--origin-${origin})` }} />
            {origin}
          </span>
        ))
      ) : (
        <span className="inline-flex items-center gap-1.5">
          {ends[mode][0]}
          <span aria-hidden="true" className="flex border border-g3">
            {swatches.map((colour, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a fixed ramp
              <span key={index} className="h-2.5 w-3.5" style={{ background: colour }} />
            ))}
          </span>
          {ends[mode][1]}
        </span>
      )}
      <span className="inline-flex items-center gap-1">
        <span className="hatched h-2.5 w-4 border border-g3" /> not trained
      </span>
    </div>
  );
}

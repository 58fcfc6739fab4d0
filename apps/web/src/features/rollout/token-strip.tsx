"use client";
/** All tokens of the attempt in one strip on a canvas: colour above, origin below, the visible part framed. Click goes there. */
import { type JSX, useEffect, useRef } from "react";
import { useWidth } from "../../charts/use-width.ts";
import { useThemeName } from "../../design/use-theme-name.ts";
import { type TokenMode, tokenStrength } from "./token-colour.ts";
import type { TokenStore } from "./token-store.ts";

const height = 30;
const originHeight = 5;

function draw(canvas: HTMLCanvasElement, store: TokenStore, mode: TokenMode, largest: number, width: number): void {
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d");
  if (!context || store.total === 0) return;
  context.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const palette = {
    seq: colour("seq-high"),
    low: colour("reward-low"),
    high: colour("reward-high"),
    floor: colour("g3"),
    masked: colour("g2"),
  };
  const perPixel = store.total / width;
  const cell = Math.max(1, width / store.total);
  const columns = perPixel > 1 ? width : store.total;
  for (let column = 0; column < columns; column += 1) {
    const from = perPixel > 1 ? Math.floor(column * perPixel) : column;
    const to = perPixel > 1 ? Math.max(from + 1, Math.floor((column + 1) * perPixel)) : column + 1;
    let strongest = 0;
    let origin: string | null = null;
    let trained = false;
    // The strongest token of a column is what is drawn: a single surprise survives any zoom.
    for (let index = from; index < to; index += 1) {
      const token = store.at(index);
      if (!token) continue;
      const strength = tokenStrength(token, mode, largest) ?? 0;
      if (Math.abs(strength) > Math.abs(strongest)) strongest = strength;
      if (origin === null || token.origin === "sampled") origin = token.origin;
      if (token.origin === "sampled" && token.maskReason === null) trained = true;
    }
    if (origin === null) continue;
    const x = perPixel > 1 ? column : column * cell;
    const w = Math.max(1, cell - (cell > 3 ? 0.5 : 0));
    context.globalAlpha = 1;
    context.fillStyle = trained ? palette.floor : palette.masked;
    context.fillRect(x, 0, w, height - originHeight - 1);
    context.globalAlpha = Math.min(1, Math.abs(strongest)) * 0.9;
    context.fillStyle = mode === "advantage" ? (strongest < 0 ? palette.low : palette.high) : palette.seq;
    if (mode !== "origin") context.fillRect(x, 0, w, height - originHeight - 1);
    context.globalAlpha = 1;
    context.fillStyle = colour(`origin-${origin}`);
    context.fillRect(x, height - originHeight, w, originHeight);
  }
}

export function TokenStrip({
  store,
  mode,
  largestAdvantage,
  view,
  onPick,
}: {
  store: TokenStore;
  mode: TokenMode;
  largestAdvantage: number;
  /** Tokens in view, end excluded. */
  view: { readonly start: number; readonly end: number } | null;
  onPick(token: number): void;
}): JSX.Element {
  const [box, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useThemeName();
  // biome-ignore lint/correctness/useExhaustiveDependencies: `theme` changes the colours that are read from the page
  useEffect(() => {
    if (canvas.current && width > 0) draw(canvas.current, store, mode, largestAdvantage, width);
  }, [store, mode, largestAdvantage, width, theme]);
  const pick = (clientX: number) => {
    const left = box.current?.getBoundingClientRect().left ?? 0;
    const share = Math.min(0.9999, Math.max(0, (clientX - left) / Math.max(1, width)));
    onPick(Math.floor(share * store.total));
  };
  return (
    <div className="px-4 pt-1 pb-2">
      <div
        ref={box}
        className="relative cursor-crosshair"
        style={{ height }}
        role="slider"
        aria-label="Place in the trajectory"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, store.total - 1)}
        aria-valuenow={view?.start ?? 0}
        tabIndex={0}
        onKeyDown={(event) => {
          const by = { ArrowRight: 16, ArrowLeft: -16, PageDown: 256, PageUp: -256 }[event.key];
          if (by === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          onPick(Math.min(store.total - 1, Math.max(0, (view?.start ?? 0) + by)));
        }}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          pick(event.clientX);
        }}
        onPointerMove={(event) => event.buttons === 1 && pick(event.clientX)}
      >
        <canvas ref={canvas} className="absolute inset-0 size-full rounded-[2px]" />
        {view && store.total > 0 && (
          <span
            aria-hidden="true"
            className="pointer-events-none absolute -inset-y-0.5 rounded-[3px] border-[1.5px] border-accent"
            style={{
              left: `${(view.start / store.total) * 100}%`,
              width: `max(4px, ${((view.end - view.start) / store.total) * 100}%)`,
            }}
          />
        )}
      </div>
    </div>
  );
}

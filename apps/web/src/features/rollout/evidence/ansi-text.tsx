import type { CSSProperties, JSX } from "react";
import { visibleText } from "../../../design/visible-text.ts";
import { cutText, formatCount } from "../../../format/numbers.ts";
import type { AnsiLine, AnsiStyle } from "./parse-ansi.ts";

/** Longer lines are cut where they are shown. */
const maxShown = 5_000;

/** One line of output. Its words are text, its colours our own: they read on both themes. */
export function AnsiText({ line, plain, found }: { line: AnsiLine; plain: boolean; found: string }): JSX.Element {
  const long = line.text.length > maxShown;
  return (
    <span className="min-w-0 flex-1 pr-4 whitespace-pre-wrap [overflow-wrap:anywhere]">
      {line.spans === null || plain || long ? (
        <Found text={visibleText(long ? cutText(line.text, maxShown) : line.text)} found={found} />
      ) : (
        line.spans.map((span, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a span is its place in the line
          <span key={index} style={cssOf(span.style)}>
            <Found text={visibleText(span.text)} found={found} />
          </span>
        ))
      )}
      {long && (
        <span className="text-g7"> … {formatCount(line.text.length - maxShown)} more characters in this line</span>
      )}
      {line.text === "" && " "}
    </span>
  );
}

function Found({ text, found }: { text: string; found: string }): JSX.Element {
  const at = found === "" ? -1 : text.toLowerCase().indexOf(found);
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark className="bg-paused-soft text-paused">{text.slice(at, at + found.length)}</mark>
      {text.slice(at + found.length)}
    </>
  );
}

/** Colours that a program chose itself are drawn towards the text's own, so that they read on any ground. */
const ink = (colour: number | string): string =>
  typeof colour === "number" ? `var(--ansi-${colour})` : `color-mix(in srgb, ${colour} 60%, var(--g9))`;
const ground = (colour: number | string): string =>
  `color-mix(in srgb, ${typeof colour === "number" ? `var(--ansi-${colour})` : colour} 22%, transparent)`;

function cssOf(style: AnsiStyle): CSSProperties {
  const { colour, background } = style;
  const css: CSSProperties = {};
  if (colour !== null) css.color = ink(colour);
  if (background !== null) css.background = ground(background);
  if (style.inverse) css.background = ground(colour ?? 7);
  if (style.bold) css.fontWeight = 600;
  if (style.dim) css.opacity = 0.75;
  if (style.italic) css.fontStyle = "italic";
  if (style.underline || style.strike)
    css.textDecoration = [style.underline && "underline", style.strike && "line-through"].filter(Boolean).join(" ");
  return css;
}

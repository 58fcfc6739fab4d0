/**
 * Draws lanes of rollouts on a canvas: filled while a worker has the stage, hatched while it waits, pale and struck through where
 * another attempt took its place. Only lanes and stretches that are in sight are drawn.
 */
import type { Schedule } from "@rolldeck/contracts/api/schedule";
import { type GanttLayout, lanesIn, type View } from "./gantt-layout.ts";

export interface GanttPalette {
  /** Of init, run, evaluate. */
  readonly stages: readonly [string, string, string];
  readonly wait: string;
  readonly lost: string;
  readonly lane: string;
  readonly chosen: string;
}

export interface GanttPicture {
  readonly schedule: Schedule;
  readonly layout: GanttLayout;
  readonly view: View;
  readonly scrollTop: number;
  readonly width: number;
  readonly height: number;
  /** Place in `layout.order` of the lane that is looked at. */
  readonly chosen: number | null;
  readonly palette: GanttPalette;
}

export function paletteOf(root: Element): GanttPalette {
  const style = getComputedStyle(root);
  const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    stages: [colour("stage-init"), colour("stage-run"), colour("stage-evaluate")],
    wait: colour("g6"),
    lost: colour("status-failed"),
    lane: colour("g1"),
    chosen: colour("accent-soft"),
  };
}

export function paintGantt(canvas: HTMLCanvasElement, picture: GanttPicture): void {
  const { layout, view, scrollTop, width, height, chosen, palette } = picture;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  const hatch = hatchOf(context, palette.wait);
  const perMs = width / Math.max(1e-9, view.toMs - view.fromMs);
  const x = (ms: number) => (ms - view.fromMs) * perMs;
  const [first, end] = lanesIn(layout, scrollTop, height);
  for (let at = first; at < end; at++) {
    const rollout = layout.order[at];
    if (rollout === undefined) continue;
    const top = (layout.tops[at] ?? 0) - scrollTop;
    context.fillStyle = at === chosen ? palette.chosen : palette.lane;
    context.fillRect(0, top, width, layout.laneHeight - (layout.laneHeight > 6 ? 2 : 1));
    for (const span of layout.spansOf[rollout] ?? []) paintSpan(context, picture, { span, rollout, top, x, hatch });
  }
}

interface Place {
  readonly span: number;
  readonly rollout: number;
  readonly top: number;
  readonly x: (ms: number) => number;
  readonly hatch: CanvasPattern | string;
}

function paintSpan(context: CanvasRenderingContext2D, picture: GanttPicture, place: Place): void {
  const { schedule, layout, width, palette } = picture;
  const { spans, rollouts, toMs } = schedule;
  const { span, rollout, top, x, hatch } = place;
  const height = layout.laneHeight - (layout.laneHeight > 6 ? 2 : 1);
  const ended = spans.endedMs[span] ?? toMs;
  const started = spans.startedMs[span] ?? ended;
  const isLost = spans.attempt[span] !== rollouts.attempt[rollout];
  const bar = (from: number, to: number, fill: CanvasPattern | string, inset: number) => {
    const [left, right] = [Math.max(0, x(from)), Math.min(width, x(to))];
    if (right <= 0 || left >= width || right <= left) return;
    context.fillStyle = fill;
    // A stage of no width is a hairline still: it happened.
    context.fillRect(left, top + inset, Math.max(0.75, right - left), height - 2 * inset);
  };
  bar(spans.readyMs[span] ?? started, started, hatch, height > 8 ? 3 : height > 4 ? 1 : 0);
  context.globalAlpha = isLost ? 0.35 : 1;
  bar(started, ended, palette.stages[spans.stage[span] ?? 0] ?? palette.wait, 0);
  context.globalAlpha = 1;
  if (!isLost) return;
  bar(started, ended, palette.lost, height / 2 - 0.5);
  if (spans.endedMs[span] != null && isLastOfAttempt(picture, place))
    cross(context, x(ended), top, height, palette.lost);
}

/** The stage in which the attempt was lost. */
const isLastOfAttempt = ({ schedule: { spans }, layout }: GanttPicture, { span, rollout }: Place): boolean =>
  !(layout.spansOf[rollout] ?? []).some(
    (at) => spans.attempt[at] === spans.attempt[span] && (spans.stage[at] ?? 0) > (spans.stage[span] ?? 0),
  );

function cross(context: CanvasRenderingContext2D, x: number, top: number, height: number, colour: string): void {
  const size = Math.min(4, height / 2);
  const middle = top + height / 2;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - size, middle - size);
  context.lineTo(x + size, middle + size);
  context.moveTo(x - size, middle + size);
  context.lineTo(x + size, middle - size);
  context.stroke();
}

function hatchOf(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = 5;
  tile.height = 5;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2;
  pen.beginPath();
  for (const shift of [-5, 0, 5]) {
    pen.moveTo(shift, 5);
    pen.lineTo(shift + 5, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat") ?? colour;
}

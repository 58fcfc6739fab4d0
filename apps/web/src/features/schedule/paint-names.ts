/** Instances beside their groups' lanes, as far as they find room. */

import { lanesIn } from "./gantt-layout.ts";
import type { GanttPicture } from "./paint-gantt.ts";

const lineHeight = 14;

export function paintNames(canvas: HTMLCanvasElement, picture: GanttPicture): void {
  const { layout, schedule, scrollTop, width, height } = picture;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(scale, scale);
  const style = getComputedStyle(document.documentElement);
  context.font = `11px ${style.getPropertyValue("--font-mono") || "monospace"}`;
  context.textBaseline = "middle";
  context.fillStyle = style.getPropertyValue("--g7").trim();
  const [first, end] = lanesIn(layout, scrollTop, height);
  let free = Number.NEGATIVE_INFINITY;
  for (let at = Math.max(0, first - 1); at < end; at++) {
    const [rollout, before] = [layout.order[at], layout.order[at - 1]];
    if (rollout === undefined) continue;
    const group = schedule.rollouts.group[rollout] ?? 0;
    if (before !== undefined && schedule.rollouts.group[before] === group) continue;
    const top = (layout.tops[at] ?? 0) - scrollTop;
    if (top < free) continue;
    free = top + lineHeight;
    context.fillText(cut(context, schedule.groups[group]?.instanceId ?? "", width - 12), 0, top + lineHeight / 2);
  }
}

/** The middle of a long name goes: data sets tell instances apart by the beginning or by the end. */
function cut(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  for (let keep = text.length - 1; keep > 1; keep--) {
    const short = `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(text.length - Math.floor(keep / 2))}`;
    if (context.measureText(short).width <= width) return short;
  }
  return "";
}

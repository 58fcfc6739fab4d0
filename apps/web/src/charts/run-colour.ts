/** A run keeps its colour and dash on every page: both come from its id alone. Eight colours, then dashes. */
const dashes = [undefined, "6 3", "2 3"] as const;

export interface RunStroke {
  readonly colour: string;
  readonly dash: string | undefined;
}

function hash(text: string): number {
  let value = 2166136261;
  for (let index = 0; index < text.length; index += 1) {
    value ^= text.charCodeAt(index);
    value = Math.imul(value, 16777619);
  }
  return value >>> 0;
}

export const runColourIndex = (runId: string): number => hash(runId) % 8;
export const runColour = (runId: string): string => `var(--run-${runColourIndex(runId)})`;

/** Strokes of several runs shown together: those that share a colour differ by dash, in the order given. */
export function runStrokes(runIds: readonly string[]): Map<string, RunStroke> {
  const seen = new Map<number, number>();
  return new Map(
    runIds.map((runId) => {
      const index = runColourIndex(runId);
      const repeat = seen.get(index) ?? 0;
      seen.set(index, repeat + 1);
      return [runId, { colour: `var(--run-${index})`, dash: dashes[repeat % dashes.length] }];
    }),
  );
}

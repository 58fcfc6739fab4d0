/** A run keeps its colour on every page: it follows from how many runs were made before it. Eight colours, then dashes. */
import type { RunSummary } from "@rolldeck/contracts/api/runs";

const dashes = [undefined, "6 3", "2 3"] as const;
const colours = 8;

export interface RunStroke {
  readonly colour: string;
  readonly dash: string | undefined;
}
type Coloured = Pick<RunSummary, "ordinal">;

const runColourIndex = (run: Coloured): number => run.ordinal % colours;
/** Runs that follow each other, which are compared most, never share one. */
export const runColour = (run: Coloured): string => `var(--run-${runColourIndex(run)})`;

/** Strokes of lines that belong together, by their place. */
export const strokeAt = (index: number): RunStroke => ({
  colour: `var(--run-${index % colours})`,
  dash: dashes[Math.floor(index / colours) % dashes.length],
});

/** Strokes of several runs shown together: those that share a colour differ by dash, in the order given. */
export function runStrokes(runs: readonly (Coloured & Pick<RunSummary, "runId">)[]): Map<string, RunStroke> {
  const seen = new Map<number, number>();
  return new Map(
    runs.map((run) => {
      const index = runColourIndex(run);
      const repeat = seen.get(index) ?? 0;
      seen.set(index, repeat + 1);
      return [run.runId, { colour: `var(--run-${index})`, dash: dashes[repeat % dashes.length] }];
    }),
  );
}

/** The same stored rows through every backend's forward pass, at the weights that all began with. */
import { connectTinker, type TinkerOptions } from "@rolldeck/backends/tinker/connect";
import { type BatchRow, trainedMask } from "@rolldeck/contracts/batch-row";
import { exportTinker } from "@rolldeck/rl/export-tinker";

/** Place by place of every row; null where a backend computes none. */
export type RowLogprobs = readonly (readonly (number | null)[])[];
const rowsPerRequest = 8;

/** @param loraRank 0: all weights; a new adapter changes nothing yet */
export async function tinkerForward(
  server: Pick<TinkerOptions, "url" | "apiKey" | "dialect">,
  rows: readonly BatchRow[],
  { loraRank, seed }: { readonly loraRank: number; readonly seed: number },
): Promise<RowLogprobs> {
  const backend = connectTinker(server);
  try {
    const fence = { runId: `forward-${loraRank}`, token: 1 };
    const model = await backend.createModel({ baseModel: "quickstart", seed, loraRank, fence });
    const found: (number | null)[][] = [];
    let seqId = 0;
    for (let from = 0; from < rows.length; from += rowsPerRequest) {
      // The loss is of no interest: its reference needs none.
      const data = rows.slice(from, from + rowsPerRequest).map((row) => exportTinker({ ...row, refLogprobs: null }));
      const loss = { name: "importance_sampling", config: {}, datums: data.length };
      const { logprobs } = await model.forward(data, loss, ++seqId);
      found.push(...logprobs.map((own) => [null, ...own]));
    }
    await model.unload?.();
    return found;
  } finally {
    await backend.close();
  }
}

/** It has a number for each trained token of exactly these rows. */
export const covers = (rows: readonly BatchRow[], logprobs: RowLogprobs): boolean =>
  logprobs.length === rows.length &&
  rows.every((row, at) =>
    trainedMask(row).every((trained, place) => trained === 0 || Number.isFinite(logprobs[at]?.[place])),
  );

/** |Δ| of the rows' trained tokens; NaN where one side has no number. */
export function differences(
  rows: readonly BatchRow[],
  one: RowLogprobs,
  other: RowLogprobs,
): { mean: number; max: number; tokens: number } {
  const gaps = rows.flatMap((row, at) =>
    trainedMask(row).flatMap((trained, place) =>
      trained === 1 ? [Math.abs((one[at]?.[place] ?? Number.NaN) - (other[at]?.[place] ?? Number.NaN))] : [],
    ),
  );
  const sum = gaps.reduce((total, gap) => total + gap, 0);
  return { mean: sum / gaps.length, max: Math.max(...gaps), tokens: gaps.length };
}

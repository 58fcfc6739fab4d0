/** docs/fidelity.md, written from what the command found. */
import type { Compared } from "./comparison.ts";
import type { HeldAgainst, Missing } from "./hold-against.ts";

const cell = (text: string): string => text.replaceAll("|", "\\|");
const shown = (value: number | null): string => (value === null ? "not a number" : value.toExponential(1));
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.map(cell).join(" | ")} |`).join("\n");

const intro = `# Our numbers against other packages

Written by \`npm run fidelity\`; do not edit it by hand. The command installs each package into an environment of its own (CPU
only, outside the clone, named by the hash of its committed lock file), calls the package's own functions on the committed
batches of \`infra/fidelity/batches\`, computes ours with \`packages/rl\`, and ends with status 1 when a row misses its bound.

Batches: vectors worked out by hand, and fifty random ones with seeds. Each random one has an all-masked row, a group of one, a
group without spread, rows of unequal length, ratios beyond both clips and beyond the dual clip, and advantages of both signs.
Clip 0.8 to 1.28, dual clip 3, L = 4. Losses are compared by value and by gradient with respect to the log-probs.

Rows that say *exported*: the batch as training rows (contracts/batch-row), written by \`packages/rl/src/export-*.ts\` in the
package's own shape and taken by its own types, validators and preprocessing; tokens, masks and log-probs are then held against
the training rows, place by place. Odd rows of a batch lose their history at a gap and become several training rows.

*equal*: largest absolute difference at most 1e-5 where the package computes in float64, 1e-4 in float32. *differs*: the
formulas are not the same; both stand below, and our number converted to theirs meets the same bound. A row that is said to
differ and does not is an error too.

\`npm test\` holds \`packages/rl\` against golden outputs in \`infra/fidelity/golden\`, and fails when a lock file, the batches or what
our exporters write changed after they were made: \`npm run fidelity -- --write-golden\` makes them again.`;

function rowsOf(compared: readonly Compared[]): string {
  return table(
    ["what", "against", "version", "expected", "largest difference", "batch", "given"],
    compared.map(({ row, comparison }) => [
      row.what,
      row.against,
      row.version,
      row.expected,
      shown(row.maxAbsDiff),
      row.batch,
      comparison.given ?? "",
    ]),
  );
}

function differencesOf(compared: readonly Compared[]): string {
  return table(
    ["what", "against", "ours", "theirs", "ours becomes theirs by", "difference before", "after"],
    compared.flatMap(({ row, comparison, unconverted }) =>
      comparison.differs === undefined
        ? []
        : [
            [
              row.what,
              row.against,
              comparison.differs.ours,
              comparison.differs.theirs,
              comparison.differs.mapping,
              shown(unconverted),
              shown(row.maxAbsDiff),
            ],
          ],
    ),
  );
}

const beyond = `## Beyond the batches

- SkyRL and VeRL cut k3 at 10, which d = log-prob − reference reaches near −2.6; ours grows on. The batches stay inside.
- SkyRL, VeRL and we clamp log ratios to ±20; TRL and the Tinker losses do not.
- SkyRL's ratio is computed in float32 whatever it is given, which is the 1e-7 in its rows.
- MaxRL divides by |μ| in ours and by μ in SkyRL's: the same for rewards from 0 up.
- REINFORCE++ weighs rollouts by their sampled tokens in a run; here by the package's response mask, as it has no other.
- TRL's log-probs are an input here: its reading of them from the model is replaced, everything after it is its own.
- Exported rows of several a rollout go to SkyRL's step-wise mode, which counts the last one; VeRL's estimators count every row, so
  its comparison has one row a rollout, and the export names the rollouts that have more.
- VeRL's trainer module and agent loop do not import in its environment (pyarrow there asks for numpy 2, VeRL for numpy below 2):
  its protocol and estimators are called by themselves.
- SkyRL 0.3.0 is the newest release for Python 3.11, VeRL 0.8.0 the newest that resolves with numpy below 2 and this torch.`;

const missingOf = (missing: readonly Missing[]): string =>
  missing.length === 0
    ? "Nothing: every function imports and answers."
    : missing.map(({ what, error }) => `- \`${what}\`: ${error.split("\n")[0]}`).join("\n");

/** The page for these results. */
export function fidelityNote(held: readonly HeldAgainst[]): string {
  const compared = held.flatMap((each) => each.compared);
  const versions = held.map(({ name, output }) => {
    const packages = Object.entries(output?.versions ?? {}).map(
      ([distribution, version]) => `${distribution} ${version}`,
    );
    return `- ${name}: ${packages.join(", ") || "not installed"}${output === null ? "" : ` (${output.dtype})`}`;
  });
  return `${[
    intro,
    "## Rows",
    rowsOf(compared),
    "## Where formulas differ",
    differencesOf(compared),
    beyond,
    "## What could not be called",
    missingOf(held.flatMap(({ missing }) => missing)),
    "## Environments",
    versions.join("\n"),
  ].join("\n\n")}\n`;
}

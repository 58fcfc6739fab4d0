import type { ComparisonDetail } from "@rolldeck/contracts/api/comparisons";
import { sharedMetricDefinitions } from "@rolldeck/contracts/shared-metrics";
import type { JSX } from "react";
import { Caution } from "../compare/caution.tsx";

/** Where numbers of one name are not one number, and what runs can't be compared in. */
export function DefinitionNotes({ comparison }: { comparison: ComparisonDetail }): JSX.Element {
  return (
    <section aria-label="Where definitions differ">
      <h2 className="mb-1 text-lg font-semibold">Where definitions differ</h2>
      <ul className="flex max-w-[960px] flex-col gap-1 text-g8">
        {comparison.notes.map(({ text, metrics }) => (
          <li key={text}>
            {text}
            {metrics.length > 0 && (
              <span className="text-g7">
                {" "}
                See {metrics.map((name) => sharedMetricDefinitions[name].title).join("; ")}.
              </span>
            )}
          </li>
        ))}
        {comparison.compared.warnings.map((warning) => (
          <Caution key={warning}>{warning}</Caution>
        ))}
      </ul>
    </section>
  );
}

"use client";
import type { ConfigCheck } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { CodeBlock } from "../../design/copy-text.tsx";
import { Facts } from "../../design/facts.tsx";
import { formatCount, formatExact } from "../../format/numbers.ts";
import { useOrigin } from "../shell/use-origin.ts";
import { nullMeaningOf } from "./config-fields.ts";
import { type ConfigDifference, configDifferences } from "./config-text.ts";

/** What the run will cost, how it differs from where it came from, and the same launch from a terminal. */
export function RunRail({
  check,
  source,
  value,
}: {
  check: ConfigCheck | undefined;
  /** Effective config of the preset or run this began from. */
  source: { readonly label: string; readonly config: unknown } | null;
  value: unknown;
}): JSX.Element {
  const origin = useOrigin();
  const estimate = check?.estimate ?? null;
  const differences = source && check?.config ? configDifferences(source.config, check.config) : [];
  return (
    <div className="flex flex-col gap-5">
      <section aria-label="Estimate">
        <h2 className="mb-1 font-semibold">Estimate</h2>
        {estimate ? (
          <>
            <Facts
              rows={[
                [
                  "Rollouts",
                  <span key="rollouts" className="num">
                    {formatExact(estimate.rollouts)}
                  </span>,
                ],
                [
                  "Sampled tokens",
                  <span key="tokens" className="num" title={formatExact(estimate.maxSampledTokens)}>
                    ≤ {formatCount(estimate.maxSampledTokens)}
                  </span>,
                ],
              ]}
            />
            <p className="mt-1 text-xs text-g7">{estimate.basis}</p>
          </>
        ) : (
          <p className="text-sm text-g7">Comes when the config has no errors.</p>
        )}
      </section>
      {source && (
        <section aria-label="Differences">
          <h2 className="mb-1 font-semibold">Against {source.label}</h2>
          {differences.length === 0 ? (
            <p className="text-sm text-g7">
              {check?.config ? "No difference." : "Comes when the config has no errors."}
            </p>
          ) : (
            <Differences differences={differences} />
          )}
        </section>
      )}
      <section aria-label="Command line" className="flex flex-col gap-1">
        <h2 className="font-semibold">Same launch, command line</h2>
        <CodeBlock label="Launch command" text="npx rolldeck run launch -f run.yaml --watch" />
        <p className="text-xs text-g7">
          with the YAML tab saved as <span className="mono">run.yaml</span>
        </p>
      </section>
      <section aria-label="REST" className="flex flex-col gap-1">
        <h2 className="font-semibold">Same launch, REST</h2>
        {value === null ? (
          <p className="text-sm text-g7">Comes when the YAML can be read.</p>
        ) : (
          <CodeBlock
            label="Launch request"
            maxHeight={220}
            text={[
              `curl ${origin}/api/v1/runs \\`,
              `  -H "Authorization: Bearer $ROLLDECK_TOKEN" \\`,
              `  -H "Content-Type: application/json" \\`,
              `  -d @- <<'JSON'`,
              JSON.stringify({ config: value }, null, 1),
              "JSON",
            ].join("\n")}
          />
        )}
      </section>
    </div>
  );
}

/** A setting that is off, by what that means; else as it is written. */
const inWords = (path: string, value: string | null): string =>
  value === "null" ? nullMeaningOf(path) : (value ?? "n/a");

function Differences({ differences }: { differences: readonly ConfigDifference[] }): JSX.Element {
  return (
    <ul className="flex flex-col gap-1 text-sm">
      {differences.map((difference) => (
        <li key={difference.path} className="min-w-0">
          <span className="mono block truncate text-xs text-g7" title={difference.path}>
            {difference.path}
          </span>
          <span className="mono flex gap-1.5 text-xs [overflow-wrap:anywhere]">
            <span className="text-g7 line-through">{inWords(difference.path, difference.before)}</span>
            <span aria-hidden="true">→</span>
            <span className="sr-only">becomes</span>
            <span className="font-medium">{inWords(difference.path, difference.after)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Where the numbers of a comparison sound alike and are not. Pure. */
import { findBackend } from "@rolldeck/backends/registry";
import type { ComparisonDetail, NativeValues } from "@rolldeck/contracts/api/comparisons";
import {
  mismatchNames,
  type SharedMetricName,
  sharedMetricDefinitions,
  sharedMetricNames,
} from "@rolldeck/contracts/shared-metrics";

type Notes = ComparisonDetail["notes"];

export function definitionNotes(native: readonly NativeValues[]): Notes {
  const words = mismatchNames.map((name) => {
    const { usedBy, unit } = sharedMetricDefinitions[name];
    return `${usedBy.map(({ who, as }) => `${who} (${as})`).join(", ")}: ${plainWords[name]}, in ${unit}`;
  });
  const notes: Notes = [
    {
      metrics: [...mismatchNames],
      text: `Trainers call different numbers the mismatch between sampler and trainer. ${words.join("; ")}. Here each is recomputed from the stored tokens under a name of its own.`,
    },
  ];
  for (const name of sharedMetricNames) {
    const text = sameDefinition(name, native);
    if (text !== null) notes.push({ metrics: [name], text });
  }
  const outside = [...new Set(native.map(backendOf))].filter((name) => findBackend(name)?.losses.length === 0);
  if (outside.length > 0)
    notes.push({
      metrics: ["shared/trained-tokens", "shared/entropy", ...mismatchNames],
      text: `Updates of runs on ${outside.join(", ")} are not made here: which rows were trained, and the trainer's log-probabilities, are not posted back, so these are n/a there.`,
    });
  const alike = commonNames(native);
  if (alike.length > 0)
    notes.push({
      metrics: [],
      text: `More than one backend reports ${alike.join(", ")}: each by its own definition, over its own tokens. They are shown as they came and are not comparable.`,
    });
  return notes;
}

const plainWords: Record<(typeof mismatchNames)[number], string> = {
  "shared/mismatch-logprob": "the mean |Δlogprob|",
  "shared/mismatch-prob": "the mean |Δprob|",
  "shared/mismatch-signed": "the signed mean of Δlogprob, sampler − trainer",
  "shared/mismatch-half-square": "half the mean square of Δlogprob",
};

/** A backend's own number that is defined as the shared one is. */
function sameDefinition(name: SharedMetricName, native: readonly NativeValues[]): string | null {
  const { title, usedBy } = sharedMetricDefinitions[name];
  for (const { as } of usedBy) {
    const backends = new Set(native.filter(({ values }) => values.some((each) => each.name === as)).map(backendOf));
    if (backends.size > 0)
      return `${as} of ${[...backends].join(", ")} is defined as ${title}; it is taken over the backend's own tokens, which may be others.`;
  }
  return null;
}

const backendOf = ({ backend }: NativeValues): string => backend;

/** Names that several backends use. */
function commonNames(native: readonly NativeValues[]): string[] {
  const users = new Map<string, Set<string>>();
  for (const { backend, values } of native)
    for (const { name } of values) users.set(name, (users.get(name) ?? new Set()).add(backend));
  return [...users].filter(([, backends]) => backends.size > 1).map(([name]) => name);
}

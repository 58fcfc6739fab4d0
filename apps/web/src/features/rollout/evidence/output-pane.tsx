"use client";
/** Outputs in full: what the tests printed, and what each call gave, whole where the model saw a part. */
import { type ArtifactInfo, artifactNames } from "@rolldeck/contracts/api/artifacts";
import type { TurnView } from "@rolldeck/contracts/api/rollouts";
import { type JSX, useMemo } from "react";
import { visibleText } from "../../../design/visible-text.ts";
import { cutText } from "../../../format/numbers.ts";
import { NoEvidence, WithArtifact } from "./evidence-bar.tsx";
import { OutputView } from "./output-view.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";
import type { Evidence } from "./use-evidence.ts";

interface Output {
  /** `tests`, or turn and call: `3.0`. */
  readonly key: string;
  readonly label: string;
  readonly info: ArtifactInfo | undefined;
  /** Where no file is kept: what the turn holds. */
  readonly text: string;
  readonly cutCharacters: number;
}

export function OutputPane({
  evidence,
  turns,
  place,
  live,
  chosen,
  onChoose,
}: {
  evidence: Evidence;
  turns: readonly TurnView[];
  place: ArtifactPlace;
  live: boolean;
  chosen: string | null;
  onChoose(key: string): void;
}): JSX.Element {
  const outputs = useMemo(() => outputsOf(evidence, turns), [evidence, turns]);
  const output = outputs.find(({ key }) => key === chosen) ?? outputs[0];
  if (!output)
    return (
      <NoEvidence title="No output" live={live}>
        No tool of this attempt was called, and its tests printed nothing that was kept.
      </NoEvidence>
    );
  const choice = (
    <select
      aria-label="Output of"
      value={output.key}
      onChange={(event) => onChoose(event.target.value)}
      className="num h-7 w-[280px] rounded-md border border-g4 bg-g0 px-1 text-sm"
    >
      {outputs.map(({ key, label }) => (
        <option key={key} value={key}>
          {label}
        </option>
      ))}
    </select>
  );
  return output.info ? (
    <WithArtifact place={place} info={output.info} doing="load the output" empty={null}>
      {(text, info) => <OutputView key={output.key} text={text} info={info} place={place} choice={choice} />}
    </WithArtifact>
  ) : (
    <OutputView
      key={output.key}
      text={
        output.cutCharacters > 0
          ? `${output.text}\n… ${output.cutCharacters} more characters are stored but not shown here`
          : output.text
      }
      place={place}
      choice={choice}
    />
  );
}

function outputsOf({ known, all }: Evidence, turns: readonly TurnView[]): Output[] {
  const ofTests = known.testOutput
    ? [{ key: "tests", label: "the tests", info: known.testOutput, text: "", cutCharacters: 0 }]
    : [];
  const wellKnown: readonly string[] = Object.values(artifactNames);
  const texts = all.filter(({ name, mediaType }) => !wellKnown.includes(name) && mediaType.startsWith("text/"));
  const ofCalls = turns.flatMap(({ turn, calls }) =>
    calls.map((call): Output => {
      const info = texts.find((artifact) => artifact.turn === turn && artifact.index === call.index);
      return {
        key: `${turn}.${call.index}`,
        label: `turn ${turn}: ${callWords(call)}${info ? " · in full" : ""}`,
        info,
        text: call.error?.message ?? call.output?.text ?? "",
        cutCharacters: call.output?.cutCharacters ?? 0,
      };
    }),
  );
  return [...ofTests, ...ofCalls];
}

/** Its name and the first thing it was told, on one line. */
function callWords({ name, arguments: args }: TurnView["calls"][number]): string {
  const first = Object.values(args).find((value) => typeof value === "string") ?? "";
  return cutText(visibleText(`${name} ${String(first).replace(/\s+/gu, " ")}`), 90);
}

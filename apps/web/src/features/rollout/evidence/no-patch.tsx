"use client";
/** Where a rollout has no patch to show: which of the reasons it is. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import { maxPatchBytes, PatchState } from "@rolldeck/contracts/patch-state";
import type { JSX } from "react";
import { EmptyState } from "../../../design/empty-state.tsx";
import { visibleText } from "../../../design/visible-text.ts";
import { formatBytes } from "../../../format/numbers.ts";
import { DownloadLink, NoEvidence, WithArtifact } from "./evidence-bar.tsx";
import type { ArtifactPlace } from "./use-artifact-text.ts";
import type { Evidence } from "./use-evidence.ts";

export function NoPatch({
  known,
  place,
  live,
}: {
  known: Evidence["known"];
  place: ArtifactPlace;
  live: boolean;
}): JSX.Element {
  return (
    <WithArtifact
      place={place}
      info={known.patchState}
      doing="load what became of the patch"
      empty={
        <NoEvidence title="No patch" live={live}>
          Nothing was collected of what this attempt changed. Tasks that grade a patch keep one when their agent ends.
        </NoEvidence>
      }
    >
      {(text) => <Uncollected state={readPatchState(text)} whole={known.wholePatch} place={place} />}
    </WithArtifact>
  );
}

/** Null for what is not of the form. */
export function readPatchState(text: string): PatchState | null {
  try {
    return PatchState.safeParse(JSON.parse(text)).data ?? null;
  } catch {
    return null;
  }
}

/** Why there is none, in a title and a sentence. */
export function noPatchWords(state: PatchState | null, isKept: boolean): { title: string; words: string } {
  const limit = formatBytes(maxPatchBytes);
  switch (state?.state) {
    case "too_large":
      return {
        title: `A patch of ${formatBytes(state.bytes)} is larger than what is shown (${limit})`,
        words: isKept
          ? "It was not graded either. All of it can be downloaded, packed:"
          : "It was not graded either, and is too large to be kept: only its size is known.",
      };
    case "no_base":
      return {
        title: "The changes can't be told",
        words: "What they would be compared with is gone: the agent removed git, or the copy of the beginning.",
      };
    case "broken":
      return {
        title: "The agent broke its sandbox",
        words: "No command can be run in it any more: nothing was collected.",
      };
    default:
      return { title: "No patch", words: "What was collected can't be read." };
  }
}

function Uncollected({
  state,
  whole,
  place,
}: {
  state: PatchState | null;
  whole: ArtifactInfo | undefined;
  place: ArtifactPlace;
}): JSX.Element {
  const { title, words } = noPatchWords(state, whole !== undefined);
  return (
    <EmptyState title={title}>
      <p>{words}</p>
      {whole && <DownloadLink place={place} info={whole} />}
      {state?.notes && <pre className="mono text-sm whitespace-pre-wrap">{visibleText(state.notes)}</pre>}
    </EmptyState>
  );
}

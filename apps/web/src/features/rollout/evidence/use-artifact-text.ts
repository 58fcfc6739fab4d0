"use client";
/** The bytes of one artifact as text. What is no UTF-8 in it is shown as such; the raw bytes are a download away. */
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import { Problem } from "@rolldeck/contracts/api/problems";
import { type UseQueryResult, useQuery } from "@tanstack/react-query";

export interface ArtifactPlace {
  readonly rolloutId: string;
  readonly attempt: number;
}

export const artifactHref = (
  { rolloutId, attempt }: ArtifactPlace,
  { turn, index, name }: Pick<ArtifactInfo, "turn" | "index" | "name">,
): string => `/api/v1/rollouts/${rolloutId}/artifacts/${turn}/${index}/${encodeURIComponent(name)}?attempt=${attempt}`;

export function useArtifactText(place: ArtifactPlace, info: ArtifactInfo | undefined): UseQueryResult<string> {
  return useQuery({
    // Written again it has another time: what was read of the old one is not shown for it.
    queryKey: ["artifact", place.rolloutId, place.attempt, info?.turn, info?.index, info?.name, info?.at],
    enabled: info !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    queryFn: async ({ signal }) => {
      if (!info) return "";
      const answer = await fetch(artifactHref(place, info), { signal });
      if (!answer.ok) throw await problemIn(answer);
      return new TextDecoder().decode(await answer.arrayBuffer());
    },
  });
}

async function problemIn(answer: Response): Promise<Error> {
  const problem = Problem.safeParse(await answer.json().catch(() => null));
  const error = new Error(problem.success ? problem.data.detail : `the server answered ${answer.status}`);
  return problem.success ? Object.assign(error, { data: { problem: problem.data } }) : error;
}

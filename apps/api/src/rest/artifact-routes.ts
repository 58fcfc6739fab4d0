/** REST routes of what rollouts left behind besides tokens. */
import { ArtifactContent, ArtifactList, ListArtifacts, ReadArtifact } from "@rolldeck/contracts/api/artifacts";
import { type Route, route } from "./route.ts";

export const artifactRoutes: Route[] = [
  route({
    method: "GET",
    path: "/rollouts/{rolloutId}/artifacts",
    operationId: "listArtifacts",
    summary: "Outputs kept in full, by turn and call",
    tag: "rollouts",
    needs: "read",
    input: ListArtifacts,
    reply: ArtifactList,
    replyName: "ArtifactList",
    call: ({ services }, input) => services.rollouts.artifacts(input),
  }),
  route({
    method: "GET",
    path: "/rollouts/{rolloutId}/artifacts/{turn}/{index}/{name}",
    operationId: "readArtifact",
    summary: "One of them as a file; of one larger than 4 MiB its head and tail",
    tag: "rollouts",
    needs: "read",
    input: ReadArtifact,
    reply: ArtifactContent,
    replyName: "ArtifactContent",
    call: ({ services }, input) => services.rollouts.artifact(input),
    file: ({ info, content }) => ({ bytes: content, mediaType: info.mediaType, fileName: info.name }),
  }),
];

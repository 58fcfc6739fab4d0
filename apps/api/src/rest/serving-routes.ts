/** REST routes of served checkpoints; what they answer themselves is under /api/serve. */
import { CheckpointRef } from "@rolldeck/contracts/api/checkpoints";
import { ServingRef, Servings, StartedServing } from "@rolldeck/contracts/api/servings";
import { z } from "zod";
import { principalWords } from "../principal.ts";
import { type Route, route } from "./route.ts";

export const servingRoutes: Route[] = [
  route({
    method: "POST",
    path: "/checkpoints/{id}/serve",
    operationId: "serveCheckpoint",
    summary: "Serve a checkpoint as an OpenAI-compatible endpoint, with a key that is shown once",
    tag: "system",
    needs: "write",
    input: CheckpointRef,
    reply: StartedServing,
    replyName: "StartedServing",
    status: 201,
    secretReply: true,
    call: ({ services, principal }, input) => services.servings.start(input, principalWords(principal)),
    location: () => "/servings",
  }),
  route({
    method: "GET",
    path: "/servings",
    operationId: "listServings",
    summary: "Checkpoints that are served",
    tag: "system",
    needs: "read",
    input: z.strictObject({}),
    reply: Servings,
    replyName: "Servings",
    call: ({ services }) => services.servings.list(),
  }),
  route({
    method: "POST",
    path: "/servings/{servingId}/stop",
    operationId: "stopServing",
    summary: "Stop serving a checkpoint for good; asking again changes nothing. Answers with those that go on",
    tag: "system",
    needs: "write",
    input: ServingRef,
    reply: Servings,
    replyName: "Servings",
    call: ({ services, principal }, input) => services.servings.stop(input, principalWords(principal)),
  }),
];

/** REST routes of checkpoints, and of where runs come from. */
import {
  CheckpointInfo,
  ExportCheckpoint,
  PinCheckpoint,
  ReadCheckpoints,
  RestoreRun,
  RunCheckpoints,
  RunRestored,
} from "@rolldeck/contracts/api/checkpoints";
import { RunRef } from "@rolldeck/contracts/api/runs";
import { z } from "zod";
import { principalWords } from "../principal.ts";
import type { CheckpointArchive } from "../services.ts";
import { type Route, route } from "./route.ts";

export const checkpointRoutes: Route[] = [
  route({
    method: "GET",
    path: "/runs/{runId}/checkpoints",
    operationId: "readCheckpoints",
    summary: "A run's checkpoints, why each is kept, the run it comes from and the runs that came from it",
    tag: "runs",
    needs: "read",
    input: ReadCheckpoints,
    reply: RunCheckpoints,
    replyName: "RunCheckpoints",
    call: ({ services }, input) => services.checkpoints.ofRun(input),
  }),
  route({
    method: "POST",
    path: "/runs/{runId}/restore",
    operationId: "restoreRun",
    summary:
      "Set a training run that is over back to one of its checkpoints: it goes on from there, and its later steps become a run of their own",
    tag: "runs",
    needs: "write",
    input: RestoreRun,
    reply: RunRestored,
    replyName: "RunRestored",
    call: ({ services, principal }, input) => services.checkpoints.restore(input, principalWords(principal)),
  }),
  route({
    method: "POST",
    path: "/runs/{runId}/reader",
    operationId: "wakeFleetReader",
    summary:
      "Ask for a worker of the fleet that reads what a run on the fleet saved, once its own are gone: for exports and servings; it is given back by itself some minutes after its last use; asking again changes nothing else",
    tag: "runs",
    needs: "write",
    input: RunRef,
    reply: RunCheckpoints,
    replyName: "RunCheckpoints",
    call: ({ services, principal }, input) => services.checkpoints.wakeReader(input, principalWords(principal)),
  }),
  route({
    method: "DELETE",
    path: "/runs/{runId}/reader",
    operationId: "releaseFleetReader",
    summary: "Give the reader of a run on the fleet back now, and with it its device",
    tag: "runs",
    needs: "write",
    input: RunRef,
    reply: RunCheckpoints,
    replyName: "RunCheckpoints",
    call: ({ services }, input) => services.checkpoints.releaseReader(input),
  }),
  route({
    method: "POST",
    path: "/checkpoints/{id}/pin",
    operationId: "pinCheckpoint",
    summary: "Keep a checkpoint whatever the run's rule says, or take that back; asking again changes nothing",
    tag: "runs",
    needs: "write",
    input: PinCheckpoint,
    reply: CheckpointInfo,
    replyName: "CheckpointInfo",
    call: ({ services, principal }, input) => services.checkpoints.pin(input, principalWords(principal)),
  }),
  route({
    method: "GET",
    path: "/checkpoints/{id}/export",
    operationId: "exportCheckpoint",
    summary:
      "A checkpoint as a tar: of a Hugging Face folder (model card, config, tokenizer, weights as safetensors), or with format=peft of the PEFT adapter that a run with backend.lora trained; shorter than its Content-Length where it could not be sent whole",
    tag: "runs",
    needs: "read",
    input: ExportCheckpoint,
    reply: z.custom<CheckpointArchive>(),
    replyName: "CheckpointArchive",
    fileTypes: { "application/x-tar": null },
    call: ({ services }, input) => services.checkpoints.export(input),
    file: ({ body, bytes, fileName }) => ({ bytes: { body, length: bytes }, mediaType: "application/x-tar", fileName }),
  }),
];

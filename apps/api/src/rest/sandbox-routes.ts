/** REST routes of sandboxes. A shell in one is a socket: `contracts/wire/shell`. */
import {
  CloseSandbox,
  KeepSandbox,
  ListRolloutSandboxes,
  ListRunSandboxes,
  RolloutSandboxes,
  RunSandboxes,
  SandboxInfo,
} from "@rolldeck/contracts/api/sandboxes";
import { principalWords } from "../principal.ts";
import { type Route, route } from "./route.ts";

export const sandboxRoutes: Route[] = [
  route({
    method: "GET",
    path: "/rollouts/{rolloutId}/sandboxes",
    operationId: "listRolloutSandboxes",
    summary: "Sandboxes of a rollout's attempts with what took time in them",
    tag: "sandboxes",
    needs: "read",
    input: ListRolloutSandboxes,
    reply: RolloutSandboxes,
    replyName: "RolloutSandboxes",
    call: ({ services }, input) => services.sandboxes.ofRollout(input),
  }),
  route({
    method: "GET",
    path: "/runs/{runId}/sandboxes",
    operationId: "listRunSandboxes",
    summary: "Sandboxes of a run, those that are there or all, and how many are in which state",
    tag: "sandboxes",
    needs: "read",
    input: ListRunSandboxes,
    reply: RunSandboxes,
    replyName: "RunSandboxes",
    call: ({ services }, input) => services.sandboxes.ofRun(input),
  }),
  route({
    method: "POST",
    path: "/sandboxes/{sandboxId}/keep",
    operationId: "keepSandbox",
    summary: "Keep a sandbox for so many minutes from now, after its rollout is done with it",
    tag: "sandboxes",
    needs: "write",
    input: KeepSandbox,
    reply: SandboxInfo,
    replyName: "SandboxInfo",
    call: ({ services, principal }, input) => services.sandboxes.keep(input, principalWords(principal)),
  }),
  route({
    method: "POST",
    path: "/sandboxes/{sandboxId}/close",
    operationId: "closeSandbox",
    summary: "Let a kept sandbox go now",
    tag: "sandboxes",
    needs: "write",
    input: CloseSandbox,
    reply: SandboxInfo,
    replyName: "SandboxInfo",
    call: ({ services, principal }, input) => services.sandboxes.close(input, principalWords(principal)),
  }),
];

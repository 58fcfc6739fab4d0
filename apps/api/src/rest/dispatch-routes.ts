/** REST routes that change how a run is dispatched while it runs, and what projects may take. */
import {
  ActOnGroup,
  ActOnRollout,
  ActOnStep,
  ChangeDispatcher,
  DispatcherReply,
  type PartAction,
  PartActions,
  PartReply,
  Quotas,
  SetPool,
  SetQuota,
} from "@rolldeck/contracts/api/dispatch";
import { z } from "zod";
import { principalWords } from "../principal.ts";
import { type Route, route } from "./route.ts";

const effects: Record<PartAction, (part: string) => string> = {
  hold: (part) => `Hold a ${part} back from its next stage; what runs comes to the end of its own`,
  resume: (part) => `Let a held ${part} go on`,
  cancel: (part) => `Cancel what is unsettled of a ${part}; what it did can still be read`,
};
const partFacts = { method: "POST", needs: "write", reply: PartReply, replyName: "PartReply" } as const;

export const dispatchRoutes: Route[] = [
  route({
    method: "POST",
    path: "/runs/{runId}/dispatcher",
    operationId: "changeDispatcher",
    summary: "Change bounds, weight, priority or start rate of a run that is not over; what is left out stays",
    tag: "runs",
    needs: "write",
    input: ChangeDispatcher,
    reply: DispatcherReply,
    replyName: "DispatcherReply",
    call: ({ services, principal }, input) => services.dispatch.change(input, principalWords(principal)),
  }),
  ...PartActions.flatMap((action) => [
    route({
      ...partFacts,
      path: `/steps/{stepId}/${action}`,
      operationId: `${action}Step`,
      summary: effects[action]("step"),
      tag: "runs",
      input: ActOnStep,
      fixed: { action },
      call: ({ services, principal }, input) => services.dispatch.actOnStep(input, principalWords(principal)),
    }),
    route({
      ...partFacts,
      path: `/groups/{groupId}/${action}`,
      operationId: `${action}Group`,
      summary: effects[action]("group"),
      tag: "runs",
      input: ActOnGroup,
      fixed: { action },
      call: ({ services, principal }, input) => services.dispatch.actOnGroup(input, principalWords(principal)),
    }),
    route({
      ...partFacts,
      path: `/rollouts/{rolloutId}/${action}`,
      operationId: `${action}Rollout`,
      summary: effects[action]("rollout"),
      tag: "rollouts",
      input: ActOnRollout,
      fixed: { action },
      call: ({ services, principal }, input) => services.dispatch.actOnRollout(input, principalWords(principal)),
    }),
  ]),
  route({
    method: "GET",
    path: "/quotas",
    operationId: "listQuotas",
    summary: "Quotas of projects, and the pools with their reserves for evaluation",
    tag: "system",
    needs: "read",
    input: z.strictObject({}),
    reply: Quotas,
    replyName: "Quotas",
    call: ({ services }) => services.dispatch.quotas(),
  }),
  route({
    method: "POST",
    path: "/quotas",
    operationId: "setQuota",
    summary: "Set how much of a pool all runs of a project may hold together; null takes the quota away",
    tag: "system",
    needs: "owner",
    input: SetQuota,
    reply: Quotas,
    replyName: "Quotas",
    call: ({ services }, input) => services.dispatch.setQuota(input),
  }),
  route({
    method: "POST",
    path: "/pools/{resource}",
    operationId: "setPool",
    summary: "Set a pool's size or its reserve for evaluation; a pool is never smaller than what is held",
    tag: "system",
    needs: "owner",
    input: SetPool,
    reply: Quotas,
    replyName: "Quotas",
    call: ({ services }, input) => services.dispatch.setPool(input),
  }),
];

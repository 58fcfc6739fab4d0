/** REST routes of the fleet of GPU workers. What changes hosts is the owner's: a Docker daemon is as good as its machine. */
import { DrainFleetHost, Fleet, FleetHostRef, FleetLog, ReadFleetLog } from "@rolldeck/contracts/api/fleet";
import { FleetHostSpec } from "@rolldeck/contracts/fleet";
import { z } from "zod";
import { type Route, route } from "./route.ts";

export const fleetRoutes: Route[] = [
  route({
    method: "GET",
    path: "/fleet",
    operationId: "getFleet",
    summary: "Hosts with their GPUs, and the GPU workers of runs: where they are, or why they wait",
    tag: "fleet",
    needs: "read",
    input: z.strictObject({}),
    reply: Fleet,
    replyName: "Fleet",
    call: ({ services }) => services.fleet.get(),
  }),
  route({
    method: "POST",
    path: "/fleet/hosts",
    operationId: "addFleetHost",
    summary: "Register a host by its Docker endpoint: a socket, TCP with TLS, or SSH",
    tag: "fleet",
    needs: "owner",
    input: FleetHostSpec,
    reply: Fleet,
    replyName: "Fleet",
    status: 201,
    call: ({ services }, input) => services.fleet.addHost(input),
  }),
  route({
    method: "POST",
    path: "/fleet/hosts/{name}/drain",
    operationId: "drainFleetHost",
    summary: "Let a host take no more workers (what is there stays until its run is over), or take them again",
    tag: "fleet",
    needs: "owner",
    input: DrainFleetHost,
    reply: Fleet,
    replyName: "Fleet",
    call: ({ services }, input) => services.fleet.drainHost(input),
  }),
  route({
    method: "DELETE",
    path: "/fleet/hosts/{name}",
    operationId: "removeFleetHost",
    summary: "Forget a host that has no workers",
    tag: "fleet",
    needs: "owner",
    input: FleetHostRef,
    reply: Fleet,
    replyName: "Fleet",
    call: ({ services }, input) => services.fleet.removeHost(input),
  }),
  route({
    method: "GET",
    path: "/fleet/workers/{workerId}/log",
    operationId: "readFleetLog",
    summary: "The last lines of a GPU worker's log",
    tag: "fleet",
    needs: "read",
    input: ReadFleetLog,
    reply: FleetLog,
    replyName: "FleetLog",
    call: ({ services }, input) => services.fleet.log(input),
  }),
];

/** The problem document inside any failed call, or a plain reading of a network failure. */
import { Problem } from "@rolldeck/contracts/api/problems";
import { z } from "zod";

const Carrier = z.object({ data: z.object({ problem: Problem }) });

export interface ShownProblem {
  readonly status: number | null;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | null;
  readonly errors: readonly { readonly path: string; readonly message: string; readonly fix?: string }[];
}

export function problemOf(error: unknown): ShownProblem {
  const carried = Carrier.safeParse(error);
  if (carried.success) {
    const { problem } = carried.data.data;
    return { ...problem, errors: problem.errors ?? [] };
  }
  const message = error instanceof Error ? error.message : "unknown failure";
  const offline = /fetch|network|load failed/i.test(message);
  return {
    status: null,
    title: "No answer",
    detail: offline
      ? "The server does not answer. Check that `npm start` is still running; this page goes on by itself when it is back."
      : message,
    requestId: null,
    errors: [],
  };
}

/** The tRPC instance: plain JSON, a Problem in `data.problem`, and procedures that need a signed-in principal. */
import type { Problem } from "@rolldeck/contracts/api/problems";
import { initTRPC, TRPCError } from "@trpc/server";
import { refuseUnstorable } from "../http/storable.ts";
import { mayWrite, type Principal } from "../principal.ts";
import { ProblemError, toProblem } from "../problems.ts";
import type { Services } from "../services.ts";

export interface ApiContext {
  readonly requestId: string;
  readonly principal: Principal | null;
  readonly services: Services;
}

const codes: Record<number, TRPCError["code"]> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_SUPPORTED",
  409: "CONFLICT",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
  422: "UNPROCESSABLE_CONTENT",
  429: "TOO_MANY_REQUESTS",
  503: "SERVICE_UNAVAILABLE",
};

/** tRPC's own refusals (unknown path, bad JSON, wrong method) as problems. */
function problemOf(error: TRPCError, requestId: string): Problem {
  if (error.cause && error.code === "INTERNAL_SERVER_ERROR") return toProblem(error.cause, requestId);
  if (error.code === "NOT_FOUND")
    return toProblem(error.cause ?? new ProblemError("not-found", error.message), requestId);
  if (error.code === "METHOD_NOT_SUPPORTED") return toProblem(new ProblemError("bad-method", error.message), requestId);
  if (error.code === "PAYLOAD_TOO_LARGE") return toProblem(new ProblemError("too-large", error.message), requestId);
  const problem = toProblem(error.cause, requestId);
  if (problem.status !== 500 || error.code === "INTERNAL_SERVER_ERROR") return problem;
  return toProblem(new ProblemError("bad-json", "The request is not valid JSON for this procedure."), requestId);
}

const t = initTRPC.context<ApiContext>().create({
  isDev: false,
  errorFormatter: ({ shape, error, ctx }) => {
    const problem = problemOf(error, ctx?.requestId ?? "none");
    return { ...shape, message: problem.detail, data: { ...shape.data, stack: undefined, problem } };
  },
});

/** Typed errors get their HTTP status; tRPC alone would call each of them a 500. */
const typedErrors = t.middleware(async ({ next, ctx }) => {
  const result = await next();
  if (result.ok || result.error.code !== "INTERNAL_SERVER_ERROR") return result;
  const cause = result.error.cause ?? result.error;
  const code = codes[toProblem(cause, ctx.requestId).status];
  if (code) throw new TRPCError({ code, message: cause.message, cause });
  return result;
});

const storable = t.middleware(async ({ next, getRawInput }) => {
  refuseUnstorable(await getRawInput());
  return next();
});

const signedIn = t.middleware(({ next, ctx }) => {
  if (!ctx.principal) throw new ProblemError("not-signed-in", "Send a session cookie or an API token.");
  return next({ ctx: { ...ctx, principal: ctx.principal } });
});
const writing = t.middleware(({ next, ctx }) => {
  if (!ctx.principal || !mayWrite(ctx.principal))
    throw new ProblemError("not-allowed", "This token has the scope read; the call needs write.");
  return next();
});

const owning = t.middleware(({ next, ctx }) => {
  if (ctx.principal?.kind !== "owner")
    throw new ProblemError("not-allowed", "Only the owner of this server may do that.");
  return next();
});

export const router = t.router;
export const createCallerFactory = t.createCallerFactory;
/** Needs a principal. */
export const reads = t.procedure.use(typedErrors).use(signedIn).use(storable);
/** Needs a principal with the scope write. */
export const writes = reads.use(writing);
/** What concerns the whole server; API tokens, too: a leaked one must not mint more. */
export const ownerOnly = reads.use(owning);

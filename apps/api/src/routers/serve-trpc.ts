/** One HTTP exchange with the tRPC router, from a body that was read and judged before. */
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import type { Reply } from "../http/reply.ts";
import { type AppRouter, appRouter } from "./app-router.ts";
import type { ApiContext } from "./trpc.ts";

export const trpcPath = "/api/trpc";
/** Calls in one batch: more than any page needs, few enough to answer at once. */
const maxBatch = 32;

export interface TrpcExchange {
  readonly method: string;
  readonly url: URL;
  readonly contentType: string | null;
  readonly body: string | null;
  readonly context: ApiContext;
  /** Only our own faults. */
  readonly onFault: (error: unknown, path: string | undefined) => void;
}

export async function serveTrpc(exchange: TrpcExchange): Promise<Reply> {
  const request = new Request(exchange.url, {
    method: exchange.method,
    headers: exchange.contentType ? { "content-type": exchange.contentType } : {},
    body: exchange.method === "POST" ? (exchange.body ?? "") : undefined,
  });
  const response = await fetchRequestHandler<AppRouter>({
    endpoint: trpcPath,
    req: request,
    router: appRouter,
    createContext: () => exchange.context,
    maxBatchSize: maxBatch,
    onError: ({ error, path }) => {
      if (error.code === "INTERNAL_SERVER_ERROR") exchange.onFault(error.cause ?? error, path);
    },
  });
  return {
    status: response.status,
    headers: {
      "content-type": response.headers.get("content-type") ?? "application/json",
      "cache-control": "no-store",
      vary: "trpc-accept",
    },
    body: await response.text(),
  };
}

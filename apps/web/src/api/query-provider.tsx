"use client";
/** tRPC over the same origin, typed by the router's type alone. A lost session leads to the sign-in page. */
import type { AppRouter } from "@rolldeck/api/routers/app-router";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createTRPCClient, httpBatchLink, httpLink, splitLink } from "@trpc/client";
import { createTRPCContext } from "@trpc/tanstack-react-query";
import { type JSX, type ReactNode, useState } from "react";
import { problemOf } from "./problem.ts";

export const { TRPCProvider, useTRPC, useTRPCClient } = createTRPCContext<AppRouter>();

/** Carried by the operation's context: the same key makes a repeated launch answer as the first did. */
export const idempotencyKey = "idempotencyKey";

const url = "/api/trpc";
const makeClient = () =>
  createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: (operation) => operation.type === "mutation",
        true: httpLink({
          url,
          headers: ({ op }) => {
            const key = op.context[idempotencyKey];
            return typeof key === "string" ? { "idempotency-key": key } : {};
          },
        }),
        false: httpBatchLink({ url, maxURLLength: 8_000, maxItems: 12 }),
      }),
    ],
  });

function leaveIfSignedOut(error: unknown): void {
  if (problemOf(error).status === 401 && window.location.pathname !== "/sign-in")
    window.location.assign(`/sign-in?next=${encodeURIComponent(window.location.pathname + window.location.search)}`);
}

const makeQueryClient = () =>
  new QueryClient({
    queryCache: new QueryCache({ onError: leaveIfSignedOut }),
    mutationCache: new MutationCache({ onError: leaveIfSignedOut }),
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        retry: (count, error) => {
          const status = problemOf(error).status;
          return count < 3 && (status === null || status >= 500);
        },
        refetchOnWindowFocus: true,
      },
      mutations: { retry: false },
    },
  });

export function QueryProvider({ children }: { children: ReactNode }): JSX.Element {
  const [queryClient] = useState(makeQueryClient);
  const [trpcClient] = useState(makeClient);
  return (
    <QueryClientProvider client={queryClient}>
      <TRPCProvider trpcClient={trpcClient} queryClient={queryClient}>
        {children}
      </TRPCProvider>
    </QueryClientProvider>
  );
}

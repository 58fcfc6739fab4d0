/** REST routes of launched comparisons. */
import {
  ComparisonDetail,
  ComparisonPage,
  ComparisonRef,
  LaunchComparison,
  LaunchedComparison,
  ListComparisons,
} from "@rolldeck/contracts/api/comparisons";
import { type Route, route } from "./route.ts";

export const comparisonRoutes: Route[] = [
  route({
    method: "POST",
    path: "/comparisons",
    operationId: "launchComparison",
    summary: "Launch one config as several runs, one for each variant; all of them, or none",
    tag: "comparisons",
    needs: "write",
    input: LaunchComparison,
    reply: LaunchedComparison,
    replyName: "LaunchedComparison",
    status: 201,
    call: ({ services }, input) => services.comparisons.launch(input),
    location: ({ comparisonId }) => `/comparisons/${comparisonId}`,
  }),
  route({
    method: "GET",
    path: "/comparisons",
    operationId: "listComparisons",
    summary: "List launched comparisons, newest first",
    tag: "comparisons",
    needs: "read",
    input: ListComparisons,
    reply: ComparisonPage,
    replyName: "ComparisonPage",
    call: ({ services }, input) => services.comparisons.list(input),
  }),
  route({
    method: "GET",
    path: "/comparisons/{comparisonId}",
    operationId: "getComparison",
    summary: "One comparison: shared metrics of its runs, native values beside them, and where definitions differ",
    tag: "comparisons",
    needs: "read",
    input: ComparisonRef,
    reply: ComparisonDetail,
    replyName: "ComparisonDetail",
    call: ({ services }, input) => services.comparisons.get(input),
  }),
];

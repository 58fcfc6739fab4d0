/** REST routes of what updates trained. */
import { type BatchFormat, ReadStepBatch, StepBatch } from "@rolldeck/contracts/api/batches";
import { BatchRow, batchRowJsonSchema } from "@rolldeck/contracts/batch-row";
import { z } from "zod";
import { type Route, route } from "./route.ts";

const mediaTypes: Readonly<Record<BatchFormat, string>> = {
  jsonl: "application/jsonl",
  parquet: "application/vnd.apache.parquet",
};

export const batchRoutes: Route[] = [
  route({
    method: "GET",
    path: "/runs/{runId}/steps/{step}/batch",
    operationId: "readStepBatch",
    summary:
      "What a step's update trained: a BatchRow a line, or the same as a Parquet file; a Link with rel=next names the rows that follow",
    tag: "runs",
    needs: "read",
    input: ReadStepBatch,
    reply: StepBatch,
    replyName: "StepBatch",
    fileTypes: { [mediaTypes.jsonl]: { name: "BatchRow", schema: BatchRow }, [mediaTypes.parquet]: null },
    call: ({ services }, input) => services.runs.batch(input),
    file: ({ bytes, format, fileName, rows, next }, { runId, step, limit }) => ({
      bytes,
      fileName,
      mediaType: mediaTypes[format],
      headers: {
        "x-rolldeck-rows": String(rows),
        ...(next === null
          ? {}
          : {
              link: `</api/v1/runs/${runId}/steps/${step}/batch?format=${format}&after=${next}&limit=${limit}>; rel="next"`,
            }),
      },
    }),
  }),
  route({
    method: "GET",
    path: "/schemas/batch-row",
    operationId: "readBatchRowSchema",
    summary: "JSON Schema of a training row",
    tag: "runs",
    needs: "read",
    input: z.strictObject({}),
    reply: z.record(z.string(), z.unknown()),
    replyName: "JsonSchema",
    call: async () => batchRowJsonSchema(),
  }),
];

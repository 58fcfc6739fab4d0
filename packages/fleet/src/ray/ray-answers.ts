/** What Ray's Jobs API answers, as far as it is used; written against Ray 2.60. Invariant: no runtime environment leaves here. */
import { z } from "zod";

const states = {
  PENDING: "pending",
  RUNNING: "running",
  STOPPED: "stopped",
  SUCCEEDED: "succeeded",
  FAILED: "failed",
} as const;
export type RayJobState = (typeof states)[keyof typeof states];
export const endedRayJobStates: readonly RayJobState[] = ["stopped", "succeeded", "failed"];

export const RayVersion = z.object({ ray_version: z.string().max(100) });
export const Submitted = z.object({ submission_id: z.string() });
export const Stopped = z.object({ stopped: z.boolean() });

const time = z.number().nullish();
export const RayJobAnswer = z
  .object({
    /** Null for what was started without the Jobs API. */
    submission_id: z.string().nullish(),
    status: z.enum(["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]),
    message: z.string().nullish(),
    error_type: z.string().nullish(),
    start_time: time,
    end_time: time,
    metadata: z.record(z.string(), z.string()).nullish(),
    driver_exit_code: z.number().nullish(),
    driver_agent_http_address: z.string().nullish(),
  })
  .transform((job) => ({
    submissionId: job.submission_id ?? null,
    state: states[job.status],
    /** For people: why it is where it is; of one that failed, its last lines. */
    message: shortened(job.message ?? ""),
    /** Whose fault a failure is, in Ray's words: `JOB_ENTRYPOINT_COMMAND_ERROR`. */
    errorType: job.error_type ?? null,
    exitCode: job.driver_exit_code ?? null,
    /** Milliseconds since 1970. */
    startedAt: job.start_time ?? null,
    endedAt: job.end_time ?? null,
    metadata: job.metadata ?? {},
    /** Node that the command runs on, once it does: a host name or address. */
    node: hostOf(job.driver_agent_http_address ?? null),
  }));
export type RayJobStatus = z.output<typeof RayJobAnswer>;

/** Of Ray's State API. */
export const RayNodesAnswer = z
  .object({
    data: z.object({
      result: z.object({
        result: z.array(
          z.object({
            node_ip: z.string().nullish(),
            state: z.string(),
            /** By name: CPU, GPU, memory in bytes, `accelerator_type:H200`. */
            resources_total: z.record(z.string(), z.number()).nullish(),
          }),
        ),
      }),
    }),
  })
  .transform(({ data }) =>
    data.result.result.map((node) => ({
      address: node.node_ip ?? null,
      lives: node.state === "ALIVE",
      resources: node.resources_total ?? {},
    })),
  );
export type RayNode = z.output<typeof RayNodesAnswer>[number];

function hostOf(url: string | null): string | null {
  return url !== null && URL.canParse(url) ? new URL(url).hostname : null;
}

/** Of a traceback the beginning says what was tried, and the end what went wrong. */
const shortened = (text: string): string =>
  text.length <= 4_000 ? text : `${text.slice(0, 1_000)}\n…\n${text.slice(-3_000)}`;

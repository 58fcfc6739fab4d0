/** What the Docker daemon answers, as far as it is used here. */
import { z } from "zod";

const record = z.record(z.string(), z.string()).nullish();

export const ImageAnswer = z.object({
  Id: z.string(),
  Config: z.object({ User: z.string().nullish(), WorkingDir: z.string().nullish() }).nullish(),
  /** Times as text. */
  Created: z.string().nullish(),
  Metadata: z.object({ LastTagTime: z.string().nullish() }).nullish(),
});

export const ImageListAnswer = z.array(
  z.object({ Id: z.string(), RepoTags: z.array(z.string()).nullish(), Labels: record }),
);

export const ContainerAnswer = z.object({
  Id: z.string(),
  State: z.object({ Running: z.boolean(), Paused: z.boolean().optional(), Restarting: z.boolean().optional() }),
  Config: z.object({ Labels: record }),
});

/** What a container was made with, as far as it is not taken over as it is. */
export const MadeAnswer = z.object({
  State: z.object({ Running: z.boolean() }),
  Config: z.object({ NetworkDisabled: z.boolean().optional() }),
  NetworkSettings: z
    .object({
      Networks: z
        .record(z.string(), z.object({ IPAMConfig: z.object({ IPv4Address: z.string().optional() }).nullish() }))
        .nullish(),
    })
    .nullish(),
});

/** A command that never began has no process: its number is 0. */
export const ExecAnswer = z.object({
  Running: z.boolean(),
  ExitCode: z.number().nullable(),
  Pid: z.number().optional(),
});

export const ListAnswer = z.array(
  z.object({
    Id: z.string(),
    ImageID: z.string(),
    /** Seconds since 1970. */
    Created: z.number(),
    State: z.string(),
    Labels: record,
  }),
);

/** Facts of a path come in a header, as JSON in base64. */
export const PathAnswer = z.object({ headers: z.object({ "x-docker-container-path-stat": z.string() }) });
export const StatAnswer = z.object({ size: z.number() });

export const InfoAnswer = z.object({
  OSType: z.string().optional(),
  MemoryLimit: z.boolean().optional(),
  PidsLimit: z.boolean().optional(),
  CPUCfsQuota: z.boolean().optional(),
  CpuCfsQuota: z.boolean().optional(),
});

export const EventAnswer = z.object({ Action: z.string().optional(), Actor: z.object({ ID: z.string() }).optional() });

/** A line of the progress of a pull or a build. */
export const ProgressAnswer = z.object({
  stream: z.string().optional(),
  status: z.string().optional(),
  error: z.string().optional(),
  id: z.string().optional(),
});

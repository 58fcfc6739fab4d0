/** What a host's Docker daemon answers, as far as it is used here. */
import { z } from "zod";

const record = z.record(z.string(), z.string()).nullish();

export const InfoAnswer = z.object({
  ServerVersion: z.string().default("unknown"),
  OperatingSystem: z.string().default("unknown"),
  OSType: z.string().optional(),
  NCPU: z.number().default(0),
  /** Bytes. */
  MemTotal: z.number().default(0),
  Runtimes: z.record(z.string(), z.unknown()).nullish(),
  /** Since Docker 28.2, where it was told of CDI. */
  DiscoveredDevices: z.array(z.object({ Source: z.string(), ID: z.string() })).nullish(),
});

export const ImageAnswer = z.object({ Id: z.string(), Config: z.object({ User: z.string().nullish() }).nullish() });

export const ListAnswer = z.array(z.object({ Id: z.string(), State: z.string(), Labels: record }));

export const ContainerAnswer = z.object({
  Id: z.string(),
  State: z.object({
    Status: z.string(),
    Running: z.boolean(),
    ExitCode: z.number().nullish(),
    OOMKilled: z.boolean().nullish(),
  }),
  Config: z.object({ Labels: record }),
  NetworkSettings: z.object({
    Ports: z.record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable()).nullish(),
  }),
});
export type ContainerAnswer = z.infer<typeof ContainerAnswer>;

export const EndAnswer = z.object({ StatusCode: z.number() });

/** What everything that acts on one container needs to know. */
import type Docker from "dockerode";
import type { OomWatch } from "./oom-watch.ts";

export interface ContainerScene {
  readonly docker: Docker;
  readonly container: Docker.Container;
  /** The sandbox's name. */
  readonly id: string;
  /** Commands run as this one where they name none. */
  readonly user: string;
  readonly workdir: string;
  readonly pids: number;
  readonly oom: OomWatch;
}

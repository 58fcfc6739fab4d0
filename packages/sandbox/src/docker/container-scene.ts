/** What everything that acts on one container needs to know. */
import type Docker from "dockerode";
import type { Turns } from "../shared/waiting.ts";
import type { OomWatch } from "./oom-watch.ts";

export interface ContainerScene {
  readonly docker: Docker;
  readonly container: Docker.Container;
  readonly deployment: string;
  /** The sandbox's name. */
  readonly id: string;
  /** Commands run as this one where they name none. */
  readonly user: string;
  readonly workdir: string;
  readonly pids: number;
  readonly oom: OomWatch;
  /** Two that end all of a user's processes would end each other first. */
  readonly endings: Turns;
}

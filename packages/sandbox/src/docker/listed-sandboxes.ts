/** This deployment's containers, as sandboxes. */
import type Docker from "dockerode";
import { ListAnswer } from "./answers.ts";
import { labels } from "./container-options.ts";
import { asked, containerMs } from "./daemon-trouble.ts";
import { isDeadOwner } from "./owner.ts";

/** One that was made and is never started, where its maker is not known to be dead: longer than making one may take. */
const unfinishedMs = 3 * containerMs;

export interface ListedSandbox {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly ended: boolean;
  /** Nothing will come of it, and nobody is about to remove it. */
  readonly leftover: boolean;
}

/** @throws BoundaryError("sandbox") */
export async function listedSandboxes(docker: Docker, deployment: string): Promise<ListedSandbox[]> {
  const label = [`${labels.deployment}=${deployment}`, `${labels.role}=sandbox`];
  const answer = await asked("listing sandboxes", docker.listContainers({ all: true, filters: { label } }));
  return Promise.all(
    ListAnswer.parse(answer).map(async ({ Created, State, Labels }) => {
      const createdAtMs = Created * 1000;
      const ageMs = Date.now() - createdAtMs;
      // A made one may be about to start.
      const unfinished = State === "created" && !(await isDeadOwner(Labels?.[labels.owner])) && ageMs <= unfinishedMs;
      // It removes itself, unless its daemon was in the way of that.
      const over = State === "exited" || State === "dead";
      return {
        id: Labels?.[labels.sandbox] ?? "",
        labels: Labels ?? {},
        createdAtMs,
        ended: !unfinished && State !== "running" && State !== "paused" && State !== "restarting",
        leftover: (State === "created" && !unfinished) || over,
      };
    }),
  );
}

/**
 * What a plan needs to know of a run's task sets. Tasks that can't be opened (a data set that is gone, an option that no longer
 * exists, a judge that is not there) are no error here: the run that needs them is to fail with the reason, and one that only
 * winds down must be able to.
 */
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { RunConfig } from "@rolldeck/contracts/run-config";
import type { TaskSetFacts } from "@rolldeck/db/reconcile/read-snapshot";
import type { WorkerContext } from "./worker-context.ts";

const noTask: TaskSetFacts = { size: () => 0, sandbox: "none" };

export class TaskSetFactsOf {
  readonly #context: Pick<WorkerContext, "openedTasks" | "judge">;
  #trouble: string | null = null;

  constructor(context: Pick<WorkerContext, "openedTasks" | "judge">) {
    this.#context = context;
  }

  /** Why the tasks asked for last can't be used; null when they can. */
  get trouble(): string | null {
    return this.#trouble;
  }

  /** In the order of the config's task sets; empty ones where there is trouble. @throws what says nothing about the config */
  async all(config: RunConfig): Promise<readonly TaskSetFacts[]> {
    try {
      const tasks = await this.#context.openedTasks.all(config);
      this.#trouble = this.#missingJudge(tasks);
      if (this.#trouble === null) return tasks;
    } catch (error) {
      if (!(error instanceof InputError || (error instanceof NotFoundError && error.kind === "task"))) throw error;
      this.#trouble = error.message;
    }
    return config.taskSets.map(() => noTask);
  }

  #missingJudge(tasks: readonly Task[]): string | null {
    const asking = tasks.findIndex(({ asksJudge }) => asksJudge !== undefined);
    if (asking === -1 || this.#context.judge !== null) return null;
    const option = `taskSets[${asking}].${tasks[asking]?.asksJudge}`;
    return `${option}: this server has no judge: its operator has named none among the endpoints`;
  }
}

/** Opens Harbor sets, and begins rollouts of their tasks in one runtime. */
import type { SandboxRuntime } from "@rolldeck/contracts/ports/sandbox";
import type { Task } from "@rolldeck/contracts/ports/task";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { makeHarbor } from "../../src/harbor/task.ts";
import { HarborStage } from "./harbor-stage.ts";

export class HarborStages {
  readonly #runtime: SandboxRuntime;
  readonly #harbor: ReturnType<typeof makeHarbor>;

  /** @param cache folder for what opened sets keep */
  constructor(runtime: SandboxRuntime, cache: string) {
    this.#runtime = runtime;
    this.#harbor = makeHarbor({ variables: () => ({}), cache: () => cache });
  }

  /** All of a set, or those of its tasks that are named, for training. */
  open(dataset: string, include: readonly string[] = [], more: JsonObject = {}): Promise<Task> {
    return this.#harbor.open({ dataset, options: { heldOutEvery: 0, include: [...include], ...more } });
  }

  /** The first instance of the opened task, set up. */
  async begin(task: Task): Promise<HarborStage> {
    const stage = new HarborStage(task, task.instance("train", 0), this.#runtime);
    await stage.start();
    return stage;
  }
}

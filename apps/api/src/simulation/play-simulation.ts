/** Plays a run's settings one after the other and says what came of it. Pure, but for its caller's ears. */
import type { SimulatedSetting, SimulationResult } from "@rolldeck/contracts/api/simulations";
import { type Advice, advising } from "@rolldeck/dispatch/simulator/advise";
import type { Prediction } from "@rolldeck/dispatch/simulator/prediction";
import { runScenario } from "@rolldeck/dispatch/simulator/run-scenario";
import type { SimulationTask } from "./thread-message.ts";

export function playSimulation(task: SimulationTask, onPlayed: (played: number) => void): SimulationResult {
  const { seeds, actualStepMs, steps } = task;
  const scenario = runScenario(task.run);
  const asked = task.dispatchers === null ? {} : { dispatchers: task.dispatchers };
  const { present, others, sentences } = toTheEnd(advising({ scenario: scenario.of, seeds, ...asked }), onPlayed);
  return {
    basis: scenario.basis,
    rollouts: scenario.rollouts,
    seeds,
    sandboxed: task.run.taskSandboxes.some((need) => need !== "none"),
    actualStepMs,
    steps,
    present: settingOf(present),
    others: others.map(settingOf),
    advice: [...sentences],
  };
}

function toTheEnd(steps: ReturnType<typeof advising>, onPlayed: (played: number) => void): Advice {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    onPlayed(step.value.done);
  }
}

const settingOf = ({ setting, stepMs, change }: Prediction): SimulatedSetting => ({
  dispatcher: setting.dispatcher,
  bounds: setting.bounds,
  sandboxes: setting.sandboxes,
  stepMs,
  change,
});

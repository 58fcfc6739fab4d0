/**
 * Fills a walk stack with runs in every state, by running them: a finished run, a second one to compare with, one whose
 * rollouts partly fail, a stopped, a paused and a live one. Deterministic but for ids and times.
 *
 * `node --import tsx e2e/walks/seed-demo.ts [sign-in-link-file]` starts such a stack, prints a sign-in link and stays until Ctrl-C.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { endedRunStatuses, type RunStatus } from "@rolldeck/contracts/lifecycle";
import { presets } from "@rolldeck/contracts/presets";
import type { RunConfigInput } from "@rolldeck/contracts/run-config";
import { breakableEngine, hostileText } from "./testing/demo-policy.ts";
import { startWalkStack, type WalkStack } from "./testing/walk-stack.ts";

const demo = (name: string, more: Partial<RunConfigInput> = {}): RunConfigInput => ({
  ...presets.quickstart.config,
  tags: [...presets.quickstart.config.tags],
  taskSets: [...presets.quickstart.config.taskSets],
  evaluation: { samples: 32 },
  budget: { steps: 10 },
  name,
  ...more,
});

export interface DemoRuns {
  readonly finished: string;
  readonly second: string;
  readonly faulty: string;
  readonly live: string;
  readonly paused: string;
  readonly stopped: string;
}

export async function seedDemo(stack: WalkStack, engine: { breaks: boolean }): Promise<DemoRuns> {
  const { rolldeck } = stack;
  const launch = async (config: RunConfigInput): Promise<string> => (await rolldeck.launchRun(config)).runId;
  const until = async (
    runId: string,
    reached: (run: { status: RunStatus; step: number }) => boolean,
  ): Promise<void> => {
    while (!reached(await rolldeck.getRun(runId))) await sleep(200);
  };
  const ended = (runId: string) => until(runId, ({ status }) => endedRunStatuses.includes(status));
  const underWay = (runId: string) => until(runId, ({ step }) => step >= 3);
  const finished = await launch(demo("key chain"));
  await ended(finished);
  const second = await launch(
    demo("key chain, GRPO", { seed: 2, algorithm: { ...presets.quickstart.config.algorithm, advantage: "grpo" } }),
  );
  await ended(second);
  engine.breaks = true;
  const faulty = await launch(demo("key chain, engine breaks", { evaluation: {}, budget: { steps: 1 } }));
  await ended(faulty);
  engine.breaks = false;
  const stopped = await launch(demo(hostileText, { budget: { steps: 500 } }));
  await underWay(stopped);
  await rolldeck.actOnRun(stopped, "stop");
  const paused = await launch(demo("long key chain", { budget: { steps: 400 }, tags: ["pilot"] }));
  await underWay(paused);
  await rolldeck.actOnRun(paused, "pause");
  const live = await launch(demo("key chain, live", { budget: { steps: 300 }, evaluation: {} }));
  return { finished, second, faulty, live, paused, stopped };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const engine = breakableEngine();
  const stack = await startWalkStack({ policy: engine.policy, delayMs: 5 });
  const end = () => void stack.close().then(() => process.exit(0));
  process.once("SIGINT", end);
  process.once("SIGTERM", end);
  const runs = await seedDemo(stack, engine).catch(async (error: unknown) => {
    await stack.close();
    throw error;
  });
  const link = await stack.signInLink();
  const file = process.argv[2];
  if (file) writeFileSync(file, JSON.stringify({ link, url: stack.url, token: stack.api.ownerToken, ...runs }));
  process.stdout.write(`${link}\n`);
}

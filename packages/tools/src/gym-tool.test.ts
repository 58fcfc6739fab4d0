import type { ToolContext } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { expect, test } from "vitest";
import { z } from "zod";
import { gridDefinition } from "../testing/grid-world.ts";
import { firstObservation, gymTool } from "./gym-tool.ts";

const context = (rollout: object | undefined, instance: JsonObject = { seed: 1 }): ToolContext => ({
  instance,
  rollout,
  agent: { turn: 0, maxTurns: 8, contextTokens: 0, maxContextTokens: 256, calls: [] },
  signal: new AbortController().signal,
  deadlineMs: 1000,
});

test("each call is a step, and the environment ends the rollout with its own word", async () => {
  const walk = gymTool(gridDefinition(3));
  const scene = context({});
  expect(await firstObservation(gridDefinition(3), 1)).toBe("you are at 1,0; the goal is at 2,2");
  expect(await walk.call({ move: "right" }, scene)).toEqual({ output: "you are at 2,0; the goal is at 2,2" });
  expect(await walk.call({ move: "down" }, scene)).toEqual({ output: "you are at 2,1; the goal is at 2,2" });
  expect(await walk.call({ move: "down" }, scene)).toEqual({
    output: "you are at 2,2; the goal is at 2,2\nreward: 1",
    finalAnswer: '{"reward":1,"steps":3}',
  });
  expect(await walk.call({ move: "up" }, scene)).toMatchObject({ error: { code: "gym" } });
});

test("rollouts of one instance walk apart", async () => {
  const walk = gymTool(gridDefinition(3));
  const instance = { seed: 0 };
  const [one, other] = [context({}, instance), context({}, instance)];
  await walk.call({ move: "right" }, one);
  expect((await walk.call({ move: "down" }, one)).output).toContain("at 1,1");
  expect((await walk.call({ move: "down" }, other)).output).toContain("at 0,1");
  const alone = context(undefined, { seed: 2 });
  expect((await walk.call({ move: "down" }, alone)).output).toContain("at 2,1");
});

test("an action that is none, or can't be taken, is told and is no step", async () => {
  const walk = gymTool(gridDefinition(2));
  const scene = context({}, {});
  expect(await walk.call({ move: "fly" }, scene)).toMatchObject({ error: { code: "bad_arguments" } });
  await expect(walk.call({ move: "up" }, scene)).rejects.toThrow("there is a wall");
  await walk.call({ move: "right" }, scene);
  expect((await walk.call({ move: "down" }, scene)).finalAnswer).toBe('{"reward":1,"steps":2}');
});

test("a step runs once, and where the worker is lost the rollout begins anew", () => {
  expect(gymTool(gridDefinition(2))).toMatchObject({ name: "walk", idempotent: false, stateful: true });
});

test("an environment that can't be reset, and a reward that is no number, are its own failures and never graded", async () => {
  let resets = 0;
  const moody = gymTool({
    name: "moody",
    description: "",
    action: z.strictObject({}),
    make: () => ({
      reset: () => {
        resets += 1;
        if (resets === 1) throw new Error("not yet");
        return "";
      },
      step: () => ({ observation: "", reward: Number.NaN, done: true, result: "won" }),
    }),
  });
  const scene = context({});
  const failed = (code: string) => ({ boundary: "infrastructure", code });
  await expect(moody.call({}, scene)).rejects.toMatchObject(failed("gym_reset"));
  // Tried anew, and then lost with its reward.
  await expect(moody.call({}, scene)).rejects.toMatchObject(failed("gym_reward"));
  expect(resets).toBe(2);
  expect(await moody.call({}, scene)).toMatchObject({ error: { code: "gym", message: "the episode is over" } });
});

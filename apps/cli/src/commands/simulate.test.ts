import type { Durations } from "@rolldeck/contracts/api/durations";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { simulateReport } from "./run-simulate.ts";
import { addSimulate } from "./simulate.ts";
import { duration, reportJson, reportText } from "./simulation-report.ts";

const config = RunConfig.parse({
  taskSets: [{ name: "swe" }],
  dispatcher: { name: "bounded", bounds: { init: 8, run: 8, evaluate: 2 } },
  algorithm: { groupsPerStep: 8, groupSize: 4 },
  budget: { steps: 7 },
});
const facts = {
  flags: { init: 5, run: 20, evaluate: 10, spread: 0.3, seeds: 2 },
  catalogue: {
    backends: [],
    taskSets: [
      {
        name: "swe",
        description: "",
        sandbox: "image" as const,
        tools: [],
        sizes: { train: null, evaluate: null },
        defaults: { maxTurns: 1, maxContextTokens: 16 },
      },
    ],
  },
  system: { pools: [{ resource: "sandbox" as const, size: 40 }] },
};
const silent = (): void => {};

/** 32 rollouts, graded slowly. */
const durations = (): Durations => {
  const all = Array.from({ length: 32 }, (_, at) => at);
  return {
    runId: "run",
    rollouts: {
      taskSet: all.map(() => 0),
      instanceIndex: all.map((at) => at >> 2),
      initMs: all.map(() => 1_000),
      reset: all.map(() => false),
      runMs: all.map((at) => 10_000 + 100 * at),
      evaluateMs: all.map(() => 30_000),
      modelMs: all.map(() => 5_000),
      sampledTokens: all.map(() => 100),
      turns: all.map(() => 2),
    },
    steps: { step: [1, 2], stepMs: [500_000, 600_000], updateMs: [20_000, 22_000] },
  };
};

describe("a prediction", () => {
  it("is given up in time, with what to do", () => {
    const hasty = { ...facts, flags: { ...facts.flags, limit: 0 } };
    expect(() => simulateReport(config, null, hasty, silent)).toThrow(/1 simulations took \d+ s.*--seeds 1.*--limit/);
  });

  it("of recorded durations says what to change and compares with what was", () => {
    const report = simulateReport(config, { durations: durations(), taskSets: ["swe"] }, facts, silent);
    const text = reportText(report);
    expect(text).toMatch(/^predicted step: [\d.]+ min, from durations of 32 recorded rollouts, 2 seeds\n/);
    expect(text).toMatch(/\nactual step: 9\.17 min \(median\); the prediction is off by [−+][\d.]+ %\n/);
    expect(text).toMatch(/\nin use: init slots \d+ %, run slots \d+ %, grading slots \d+ %, sandboxes \d+ %\n/);
    expect(text).toMatch(
      /\npolicy +init +run +evaluate +sandboxes +step +95 % interval +change\nbounded +8 +8 +2 +40 /,
    );
    expect(text).toMatch(/\n● raise evaluate from 2 to 4: −\d+ % step time/);
    const json = JSON.parse(JSON.stringify(reportJson(report)));
    expect(json).toMatchObject({ basis: "recorded", rollouts: 32, actualStepMs: 550_000, seeds: 2 });
    expect(json.present).toMatchObject({ dispatcher: "bounded", bounds: { evaluate: 2 }, sandboxes: 40, change: null });
    expect(json.settings.length).toBeGreaterThan(5);
    const settings = [json.present, ...json.settings].map(({ dispatcher, bounds, sandboxes }) =>
      JSON.stringify({ dispatcher, bounds, sandboxes }),
    );
    expect(new Set(settings).size).toBe(settings.length);
    expect(json.present.spans).toBeUndefined();
  });

  it("without records says that its durations are assumed, and follows the trainer that was named", () => {
    const { flags, ...rest } = facts;
    const report = simulateReport(config, null, { ...rest, flags: { ...flags, update: 30 } }, silent);
    expect(reportText(report)).toMatch(/^predicted step: .* from assumed durations, 2 seeds\n/);
    expect(reportText(report)).not.toMatch(/actual step/);
    expect(report.split?.rows.length).toBeGreaterThan(0);
    expect(reportText(report)).toMatch(/\nsampler replicas \(async\) +step +trainer waits\n +1 /);
    expect(reportText(report)).toMatch(/\n● .*sampler replica/);
  });

  it("says how to weigh samplers against the trainer where nobody said what an update takes", () => {
    const report = simulateReport(config, null, facts, silent);
    expect(reportText(report)).toMatch(/\nwith --update <s>, or --from-run/);
  });

  it("on an engine that saturates waits for its tokens", () => {
    const recorded = { durations: durations(), taskSets: ["swe"] };
    const engine = { peakTokensPerSecond: 40, halfAt: 4, requestTokensPerSecond: 20 };
    const { flags, ...rest } = facts;
    const slow = simulateReport(config, recorded, { ...rest, flags: { ...flags, engine } }, silent);
    expect(slow.advice.present.simulation.waits.gpu).toBeGreaterThan(0);
    expect(reportText(slow)).toContain("the engine's tokens");
  });

  it("tells how far it is", () => {
    const lines: string[] = [];
    simulateReport(config, null, facts, (line) => lines.push(line));
    expect(lines[0]).toBe("\r1 simulations, 0 s; each setting takes 2, and there are up to 40");
    expect(lines.at(-1)).toBe("\r\u001b[K");
  });
});

describe("the command", () => {
  const parse = async (...argv: string[]) => {
    const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
    addSimulate(program);
    for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
    return program.parseAsync(["simulate", ...argv], { from: "user" });
  };

  it("refuses what is no duration", async () => {
    await expect(parse("--run", "-3")).rejects.toThrow(/a duration in seconds is 0 to 86400/);
    await expect(parse("--engine", "4000,32")).rejects.toThrow(/an engine is three numbers above 0, as 4000,32,80/);
    await expect(parse("--seeds", "many")).rejects.toThrow(/seeds is 1 to 32/);
  });
});

it("durations are read at a glance", () => {
  expect([40.44, 12_345, 119_000, 480_000, 9_000_000].map(duration)).toEqual([
    "40.4 ms",
    "12.3 s",
    "119 s",
    "8 min",
    "2.5 h",
  ]);
});

import { buildConfig, buildSnapshot } from "@rolldeck/dispatch/testing/build-snapshot";
import { expect, test } from "vitest";
import { engineNow } from "./engine-now.ts";

const now = 1_000_000;
const load = { at: now - 2_000, running: 12, waiting: 3, cacheUse: 0.85 };
const bounds = { init: 8, run: 16, evaluate: 8 };
const config = (adaptive: boolean, backend = "gpu-worker") =>
  buildConfig({ backend: { name: backend }, dispatcher: { adaptive, bounds } });

test("says what the engine bears, and why fewer run than the bound lets", () => {
  const runLimit = { limit: 13, since: now - 40_000, reason: "fewer at once: 3 requests wait inside the engine" };
  expect(engineNow(buildSnapshot({ now, config: config(true), engine: load, runLimit }))).toEqual({
    tells: true,
    load: { readAt: new Date(now - 2_000).toISOString(), fresh: true, running: 12, waiting: 3, cacheUse: 0.85 },
    adaptive: true,
    limit: 13,
    bound: 16,
    limitSince: new Date(now - 40_000).toISOString(),
    limitReason: runLimit.reason,
  });
});

test("an old reading is told as one; a limit above a bound that shrank counts no more than the bound", () => {
  const engine = { ...load, at: now - 15_001 };
  const shown = engineNow(
    buildSnapshot({ now, config: config(true), engine, runLimit: { limit: 40, since: now, reason: null } }),
  );
  expect(shown).toMatchObject({ load: { fresh: false }, limit: 16 });
});

test("without adaptive concurrency the bound counts, and a backend that tells nothing is named as that", () => {
  const runLimit = { limit: 4, since: now };
  expect(engineNow(buildSnapshot({ now, config: config(false, "openai-chat"), runLimit }))).toEqual({
    ...{ tells: false, load: null, adaptive: false, limit: 16, bound: 16, limitSince: null, limitReason: null },
  });
});

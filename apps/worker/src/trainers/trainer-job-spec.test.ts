import { parseTrainers } from "@rolldeck/backends/trainers/read-trainers";
import { RunConfig } from "@rolldeck/contracts/run-config";
import { expect, test } from "vitest";
import { smokeConfig } from "../../testing/rig.ts";
import { trainerJobSpec } from "./trainer-job-spec.ts";

const [trainer] = parseTrainers(
  JSON.stringify([
    {
      name: "cluster",
      backend: "verl",
      ray: { url: "http://10.0.0.7:8265" },
      entrypoint: 'python -m train --steps "$ROLLDECK_STEPS"',
      runtimeEnv: { pip: ["x"], env_vars: { ROLLDECK_RUN: "another", NCCL_DEBUG: "WARN" } },
      resources: { cpus: 1 },
      rolldeck: { url: "http://10.0.0.1:4477", tokenEnv: "TOKEN" },
      engines: { urls: ["http://10.0.0.7:8080"] },
    },
  ]),
  () => "t0ken",
);

test("the command stands as the operator wrote it; what a config says reaches it as variables, and none is taken over", () => {
  if (trainer === undefined) throw new Error("no trainer");
  const name = '$(rm -rf ~); "';
  const config = RunConfig.parse(smokeConfig({ seed: 7, model: { name, warmStart: null }, budget: { steps: 3 } }));
  const spec = trainerJobSpec(trainer, { runId: "r1", config }, { submissionId: "rolldeck-r1-2", attempt: 2 });
  expect(spec).toMatchObject({
    submissionId: "rolldeck-r1-2",
    entrypoint: 'python -m train --steps "$ROLLDECK_STEPS"',
    metadata: { run: "r1", attempt: "2" },
    entrypointResources: { cpus: 1 },
  });
  expect(spec.runtimeEnv).toMatchObject({
    pip: ["x"],
    env_vars: {
      ...{ NCCL_DEBUG: "WARN", ROLLDECK_RUN: "r1", ROLLDECK_TOKEN: "t0ken", ROLLDECK_URL: "http://10.0.0.1:4477" },
      ...{ ROLLDECK_MODEL: name, ROLLDECK_STEPS: "3", ROLLDECK_SEED: "7", ROLLDECK_TEMPERATURE: "1" },
    },
  });
});

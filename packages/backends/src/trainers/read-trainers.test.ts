import { InputError } from "@rolldeck/contracts/errors";
import { expect, test } from "vitest";
import { parseTrainers, trainerNames } from "./read-trainers.ts";

const entry = {
  name: "verl-h200",
  backend: "verl",
  ray: { url: "http://10.0.0.7:8265", tokenEnv: "RAY_TOKEN" },
  entrypoint: "python -m verl.trainer.main_ppo",
  runtimeEnv: { working_dir: "s3://bucket/code.zip", env_vars: { NCCL_DEBUG: "WARN" } },
  rolldeck: { url: "http://10.0.0.1:4477", tokenEnv: "TRAINER_TOKEN" },
  engines: { urls: ["http://10.0.0.7:8080"], keyEnv: "ENGINE_KEY" },
};
const secrets: Readonly<Record<string, string>> = { RAY_TOKEN: "r", TRAINER_TOKEN: "t", ENGINE_KEY: "e" };
const parse = (list: unknown, variables = secrets) => parseTrainers(JSON.stringify(list), (name) => variables[name]);

test("an entry has its keys at hand, and of its environment the variables apart", () => {
  expect(parse([entry])).toMatchObject([
    {
      name: "verl-h200",
      ray: { url: "http://10.0.0.7:8265", token: "r" },
      rolldeck: { url: "http://10.0.0.1:4477", token: "t" },
      runtimeEnv: { working_dir: "s3://bucket/code.zip" },
      variables: { NCCL_DEBUG: "WARN" },
      engines: { kind: "openai-completions", name: "verl-h200", urls: ["http://10.0.0.7:8080"], keys: ["e"] },
    },
  ]);
});

test("what is shown of a list holds no address and no key, and needs no variable", () => {
  expect(trainerNames(JSON.stringify([entry]))).toEqual([{ name: "verl-h200", backend: "verl" }]);
});

test.each([
  ["another backend", [{ ...entry, backend: "trl" }], "trainers[0].backend"],
  ["no command", [{ ...entry, entrypoint: "" }], "trainers[0].entrypoint"],
  ["a key in the file", [{ ...entry, ray: { url: entry.ray.url, token: "secret" } }], "trainers[0].ray"],
  ["a name twice", [entry, entry], "trainers[1].name"],
  [
    "a variable that is not set",
    [{ ...entry, engines: { ...entry.engines, keyEnv: "NONE" } }],
    "trainers[0].engines.keyEnv",
  ],
  ["no list", "secret", "trainers"],
])("%s is refused by its place, and no value is repeated", (_, list, path) => {
  const error = (() => {
    try {
      return parse(list);
    } catch (caught) {
      return caught;
    }
  })();
  expect(error).toBeInstanceOf(InputError);
  expect(error).toMatchObject({ issues: [{ path }] });
  expect(JSON.stringify(error)).not.toContain("secret");
});

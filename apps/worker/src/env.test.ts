import { InputError } from "@rolldeck/contracts/errors";
import { describe, expect, test } from "vitest";
import { parseWorkerEnv } from "./env.ts";

const database = { ROLLDECK_DATABASE_URL: "postgres://u:secret@127.0.0.1/db" };

describe("worker environment", () => {
  test("needs no more than a database; the model root is the repository's", () => {
    const env = parseWorkerEnv(database, import.meta.dirname);
    expect(env).toMatchObject({ redisUrl: null, gpuWorker: null, concurrency: 512, port: null, logLevel: "info" });
    expect(env.modelRoots).toHaveLength(1);
    expect(env.modelRoots[0]).toMatch(/infra\/models$/);
  });
  test("a blank variable is an absent one", () => {
    const blank = { ...database, ROLLDECK_REDIS_URL: "", ROLLDECK_GPU_WORKER_URL: "", ROLLDECK_WORKER_PORT: "" };
    expect(parseWorkerEnv(blank, "/")).toMatchObject({ redisUrl: null, gpuWorker: null, port: null });
  });
  test("an ambient DATABASE_URL does not count", () => {
    expect(() => parseWorkerEnv({ DATABASE_URL: "postgres://x/y" }, "/")).toThrow(InputError);
  });
  test("names what is wrong and repeats no value", () => {
    const wrong = { ...database, ROLLDECK_WORKER_CONCURRENCY: "many", ROLLDECK_GPU_WORKER_KEY: "canary" };
    const error = (() => {
      try {
        return parseWorkerEnv(wrong, "/");
      } catch (caught) {
        return caught;
      }
    })();
    expect(error).toBeInstanceOf(InputError);
    expect(String(error)).toContain("ROLLDECK_WORKER_CONCURRENCY");
    expect(String(error)).toContain("ROLLDECK_GPU_WORKER_KEY");
    expect(String(error)).not.toContain("canary");
  });
  test("an address of a model server needs its key", () => {
    const url = { ...database, ROLLDECK_GPU_WORKER_URL: "http://127.0.0.1:1" };
    expect(() => parseWorkerEnv(url, "/")).toThrow(/ROLLDECK_GPU_WORKER_KEY/);
  });
  test("several model roots", () => {
    expect(parseWorkerEnv({ ...database, ROLLDECK_MODEL_ROOTS: "/a:/b:" }, "/").modelRoots).toEqual(["/a", "/b"]);
  });
  test("the operator's list of endpoints: a path, and the variables it may name", () => {
    expect(parseWorkerEnv(database, "/").endpointsFile).toBeNull();
    const env = parseWorkerEnv({ ...database, ROLLDECK_ENDPOINTS: "endpoints.yaml", HOSTED_KEY: "k" }, "/srv");
    expect(env.endpointsFile).toBe("/srv/endpoints.yaml");
    expect([env.variable("HOSTED_KEY"), env.variable("MISSING")]).toEqual(["k", undefined]);
  });
  test("data roots: none unless they are named", () => {
    expect(parseWorkerEnv(database, "/").dataRoots).toEqual([]);
    expect(parseWorkerEnv({ ...database, ROLLDECK_DATA_ROOTS: "/a:/b" }, "/").dataRoots).toEqual(["/a", "/b"]);
  });
});

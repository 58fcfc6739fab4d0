/** The client of Ray's Jobs API against a real Ray. */
import { connectRayJobs, type RayJobs } from "@rolldeck/fleet/ray/ray-jobs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StartedRay, startRay } from "../stack/started-ray.ts";

let ray: StartedRay;
let jobs: RayJobs;
beforeAll(async () => {
  ray = await startRay();
  jobs = connectRayJobs(ray);
}, 700_000);
afterAll(() => ray?.stop());

const limit = { timeout: 150_000, interval: 300 };
const stateOf = async (id: string) => (await jobs.status(id)).state;

describe("jobs on a real Ray", () => {
  test("one runs with its environment, is read while it runs, is stopped, and is removed", async () => {
    expect(await jobs.version()).toMatch(/^2\.\d+/);
    const entrypoint = `echo "grün $MARK"; exec sleep 600`;
    const spec = {
      submissionId: "one",
      entrypoint,
      runtimeEnv: { env_vars: { MARK: "m-1" } },
      metadata: { run: "r1" },
    };
    expect(await jobs.submit(spec)).toEqual({ submissionId: "one" });
    await expect.poll(() => jobs.logs("one"), limit).toContain("grün m-1\n");
    expect(await jobs.status("one")).toMatchObject({ state: "running", metadata: { run: "r1" }, exitCode: null });
    expect(JSON.stringify([await jobs.status("one"), await jobs.list()])).not.toContain("m-1");

    await expect(jobs.submit(spec)).rejects.toMatchObject({ code: "job-exists" });
    await expect(jobs.remove("one")).rejects.toMatchObject({ code: "still-running" });
    expect(await jobs.stop("one")).toBe(true);
    await expect.poll(() => stateOf("one"), limit).toBe("stopped");
    expect(await jobs.stop("one")).toBe(false);
    expect((await jobs.list()).map(({ submissionId }) => submissionId)).toContain("one");
    await jobs.remove("one");
    await jobs.remove("one");
    await expect(jobs.status("one")).rejects.toMatchObject({ code: "no-job" });
    await expect(jobs.logs("one")).rejects.toMatchObject({ code: "no-job" });
    await expect(jobs.stop("one")).rejects.toMatchObject({ code: "no-job" });
  });

  test("one that fails says with what, and its last words; one that ends well says so", async () => {
    await jobs.submit({ submissionId: "bad", entrypoint: "echo last words; exit 3" });
    await jobs.submit({ submissionId: "good", entrypoint: "true" });
    await jobs.submit({ submissionId: "odd", entrypoint: "true", runtimeEnv: { pip: 5 } });
    await expect.poll(() => stateOf("bad"), limit).toBe("failed");
    expect(await jobs.status("bad")).toMatchObject({ exitCode: 3, message: expect.stringContaining("last words") });
    await expect.poll(() => stateOf("good"), limit).toBe("succeeded");
    expect((await jobs.status("odd")).message).toContain("runtime_env['pip'] must be of type");
    expect(await jobs.logs("odd")).toBe("");
  });

  test("one that asks for what the cluster does not have waits, also when it was asked to end", async () => {
    await jobs.submit({ submissionId: "big", entrypoint: "true", entrypointResources: { gpus: 8 } });
    await expect.poll(() => jobs.status("big"), limit).toMatchObject({ state: "pending" });
    expect(await jobs.stop("big")).toBe(true);
    expect(await stateOf("big")).toBe("pending");
    await expect(jobs.remove("big")).rejects.toMatchObject({ code: "still-running" });
  });

  test("a wrong token, and none, are told as that", async () => {
    for (const token of ["wrong-token-wrong-token-wrong-token", undefined])
      await expect(connectRayJobs({ url: ray.url, token }).list()).rejects.toMatchObject({ code: "unauthorized" });
  });
});

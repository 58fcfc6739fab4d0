import { Durations } from "@rolldeck/contracts/api/durations";
import { Problem } from "@rolldeck/contracts/api/problems";
import { Launched } from "@rolldeck/contracts/api/runs";
import { moveRun } from "@rolldeck/db/runs/move-run";
import { seedRun } from "@rolldeck/db/testing/seed-run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jsonPost, smallConfig, startTestApi, type TestApi } from "../../testing/start-api.ts";

let api: TestApi;
let runId: string;
beforeAll(async () => {
  api = await startTestApi();
  runId = await seedRun(api.database.pool);
});
afterAll(() => api.close());

const problem = async (response: Response) => Problem.parse(await response.json());
const runCount = async () => Number((await api.database.pool.query("select count(*) from runs")).rows[0].count);

describe("launch", () => {
  it("takes YAML text, JSON text and objects alike", async () => {
    const yaml = "name: from yaml\ntaskSets:\n  - name: key-chain\n";
    const sent: RequestInit[] = [
      { method: "POST", headers: { "content-type": "application/yaml" }, body: yaml },
      jsonPost({ config: yaml }),
      jsonPost({ config: JSON.stringify({ name: "from json", taskSets: [{ name: "key-chain" }] }) }),
      jsonPost({ config: { name: "from object", taskSets: [{ name: "key-chain" }] } }),
    ];
    for (const init of sent) {
      const response = await api.fetch("/api/v1/runs", init);
      expect(response.status).toBe(201);
      const { runId: made } = Launched.parse(await response.json());
      expect(response.headers.get("location")).toBe(`/api/v1/runs/${made}`);
      expect((await api.fetch(`/api/v1/runs/${made}`)).status).toBe(200);
    }
  });

  it("happens once per Idempotency-Key", async () => {
    const before = await runCount();
    const init = jsonPost({ config: smallConfig }, { "idempotency-key": "launch-1" });
    const answers = await Promise.all(Array.from({ length: 5 }, () => api.fetch("/api/v1/runs", init)));
    expect(answers.map((answer) => answer.status).filter((status) => status === 409 || status === 201)).toHaveLength(5);
    expect(await runCount()).toBe(before + 1);
    const replay = await api.fetch("/api/v1/runs", init);
    expect(replay.status).toBe(201);
    expect(replay.headers.get("idempotency-replayed")).toBe("true");
    const first = answers.find((answer) => answer.status === 201);
    expect(await replay.json()).toEqual(await first?.json());
    const other = await api.fetch(
      "/api/v1/runs",
      jsonPost({ config: { ...smallConfig, seed: 2 } }, { "idempotency-key": "launch-1" }),
    );
    expect((await problem(other)).status).toBe(422);
    expect(
      (await api.fetch("/api/v1/runs", jsonPost({ config: smallConfig }, { "idempotency-key": "a b" }))).status,
    ).toBe(400);
    expect(await runCount()).toBe(before + 1);
  });

  it("happens once over tRPC too", async () => {
    const before = await runCount();
    const init = jsonPost({ config: smallConfig }, { "idempotency-key": "launch-2" });
    const [a, b] = [await api.fetch("/api/trpc/runs.launch", init), await api.fetch("/api/trpc/runs.launch", init)];
    expect([a.status, b.status]).toEqual([200, 200]);
    expect(await b.json()).toEqual(await a.json());
    expect(await runCount()).toBe(before + 1);
  });
});

describe("actions", () => {
  it("follow the lifecycle, and asking again changes nothing", async () => {
    const made = await seedRun(api.database.pool);
    const act = async (action: string) => {
      const response = await api.fetch(`/api/v1/runs/${made}/${action}`, jsonPost({ reason: "tests" }));
      return z.object({ status: z.union([z.string(), z.number()]) }).parse(await response.json()).status;
    };
    expect(await act("pause")).toBe("pausing");
    expect(await act("pause")).toBe("pausing");
    expect(await act("resume")).toBe("running");
    expect(await act("stop")).toBe("stopping");
    expect(await act("stop")).toBe("stopping");
    expect(await act("resume")).toBe(409);
    const { rows } = await api.database.pool.query(
      "select count(*)::int as n from events where run_id = $1 and type = 'run-status'",
      [made],
    );
    expect(rows[0].n).toBe(3);
  });
  it("leave a reason, also where nobody gave one, and it outlives the winding down", async () => {
    const made = await seedRun(api.database.pool);
    const reasonAfter = async (action: string, body: unknown) => {
      await api.fetch(`/api/v1/runs/${made}/${action}`, jsonPost(body));
      const answer = await api.fetch(`/api/v1/runs/${made}`);
      return z.object({ reason: z.string().nullable() }).parse(await answer.json()).reason;
    };
    expect(await reasonAfter("pause", { reason: "lunch" })).toBe("lunch");
    expect(await reasonAfter("resume", {})).toBeNull();
    expect(await reasonAfter("stop", {})).toBe("stopped by hand");
    await moveRun(api.database.pool, made, "stopped", null);
    expect(await reasonAfter("stop", {})).toBe("stopped by hand");
  });
  it("refuse what the address already says", async () => {
    expect((await api.fetch(`/api/v1/runs/${runId}/pause`, jsonPost({ action: "stop" }))).status).toBe(400);
    expect((await api.fetch(`/api/v1/runs/${runId}/pause?reason=x`, { method: "POST" })).status).toBe(400);
  });
});

describe("what is missing", () => {
  it.each([
    ["/api/v1/compare", "runIds"],
    [`/api/v1/compare?runIds=${"x".repeat(10)}`, "names"],
  ])("is required, in words, at %s", async (path, field) => {
    const { errors, detail } = await problem(await api.fetch(path));
    expect(errors).toContainEqual({ path: field, message: "is required" });
    expect(detail).not.toContain("undefined");
  });
});

describe("events", () => {
  it("can be waited for", async () => {
    const made = await seedRun(api.database.pool);
    const waiting = api.fetch(`/api/v1/runs/${made}/events?after=0&waitMs=20000`);
    await api.fetch(`/api/v1/runs/${made}/pause`, { method: "POST" });
    const body = z.object({ events: z.array(z.object({ seq: z.int() })) }).parse(await (await waiting).json());
    expect(body.events.map((event) => event.seq)).toEqual([1]);
    const past = await api.fetch(`/api/v1/runs/${made}/events?after=1000000000000&waitMs=20000`);
    expect(await past.json()).toEqual({ events: [], head: 1 });
  });
});

describe("durations", () => {
  it("are columns of equal length, empty before anything was scored", async () => {
    const made = await seedRun(api.database.pool);
    const reply = await api.fetch(`/api/v1/runs/${made}/durations?purpose=train&limit=10`);
    expect(reply.status).toBe(200);
    const { rollouts, steps } = Durations.parse(await reply.json());
    expect([...Object.values(rollouts), ...Object.values(steps)].every((column) => column.length === 0)).toBe(true);
    expect((await api.fetch("/api/v1/runs/nosuchrun/durations")).status).toBe(404);
    expect((await api.fetch(`/api/v1/runs/${made}/durations?limit=0`)).status).toBe(400);
  });
});

describe("driven runs", () => {
  it("refuse instances that the run does not have, and ask the same step once", async () => {
    const driven = await seedRun(api.database.pool, {
      config: { stepSource: "driven", taskSets: [{ name: "key-chain", size: 10 }] },
    });
    const ask = (instances: unknown, samples = 2) =>
      api.fetch(`/api/v1/runs/${driven}/batches`, jsonPost({ trainerStep: 1, instances, samples, policyVersion: 0 }));
    const refused = await problem(
      await ask([
        { taskSet: 0, index: 9 },
        { taskSet: 1, index: 0 },
        { taskSet: 0, index: 10 },
      ]),
    );
    expect(refused.errors?.map((issue) => issue.path)).toEqual(["instances[1].taskSet", "instances[2].index"]);
    const first: unknown = await (await ask([{ taskSet: 0, index: 9 }])).json();
    expect(await (await ask([{ taskSet: 0, index: 9 }])).json()).toEqual(first);
    expect((await ask([{ taskSet: 0, index: 9 }], 3)).status).toBe(409);
    const planned = await api.fetch(`/api/v1/runs/${runId}/heartbeat`, jsonPost({}));
    expect(planned.status).toBe(409);
  });

  it("refuse a step past the budget's last, which would end them at once", async () => {
    const driven = await seedRun(api.database.pool, {
      config: { stepSource: "driven", taskSets: [{ name: "key-chain" }], budget: { steps: 3 } },
    });
    const ask = (trainerStep: number) =>
      api.fetch(
        `/api/v1/runs/${driven}/batches`,
        jsonPost({ trainerStep, instances: [{ taskSet: 0, index: 0 }], samples: 1, policyVersion: 0 }),
      );
    const refused = await problem(await ask(4));
    expect(refused.errors).toMatchObject([{ path: "trainerStep", message: "the run is over after step 3" }]);
    expect((await ask(3)).status).toBeLessThan(300);
  });
});

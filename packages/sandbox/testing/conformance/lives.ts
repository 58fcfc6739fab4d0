/** How sandboxes begin, are shared, are kept up and end: by whom opened them, by their lease, and when their opener is killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { describe, expect, it } from "vitest";
import { boundary, type ConformanceScene, forever, newDeployment, newSandboxId, run, said, until } from "./scene.ts";

const second = 1_000;
const holder = fileURLToPath(new URL("./hold-sandboxes.ts", import.meta.url));

async function isGone(scene: ConformanceScene, id: string): Promise<boolean> {
  const listed = await scene.runtime.list(forever);
  return !listed.some((fact) => fact.id === id && fact.state === "running");
}

export function lifeCases(scene: ConformanceScene): void {
  describe("lives", () => {
    it("can be used now, and say what they are", async () => {
      const { runtime } = scene;
      expect(await runtime.ailment(forever)).toBeNull();
      expect(runtime.isolation).not.toBe("");
      const sandbox = await scene.open();
      expect([sandbox.runtime, sandbox.workdir.startsWith("/")]).toEqual([runtime.name, true]);
      await scene.close(sandbox);
    });

    it("are found by another process, which sees the same files", async () => {
      const sandbox = await scene.open({ environment: { FROM_SPEC: "kept" }, workdir: scene.facts.folder });
      await said(sandbox, `echo here >${scene.facts.folder}/found`);
      const other = await scene.another();
      const same = await other.attach(sandbox.id, forever);
      expect([same.id, same.workdir]).toEqual([sandbox.id, sandbox.workdir]);
      expect(await said(same, "pwd; cat found; echo $FROM_SPEC; id -un")).toBe(
        `${scene.facts.folder}\nhere\nkept\n${await said(sandbox, "id -un")}`,
      );
      await other.close(sandbox.id, forever);
      await expect(run(sandbox, ["true"])).rejects.toEqual(boundary("gone"));
    });

    it("are listed with their labels, to their own deployment only", async () => {
      const before = Date.now() - 2 * second;
      const sandbox = await scene.open({ labels: { run: "run-7", rollout: "r_1", attempt: "2" } });
      const fact = (await scene.runtime.list(forever)).find(({ id }) => id === sandbox.id);
      expect(fact).toMatchObject({ state: "running", labels: { run: "run-7", rollout: "r_1", attempt: "2" } });
      expect(fact?.createdAtMs).toBeGreaterThan(before);
      const foreign = await scene.another(newDeployment());
      expect(await foreign.list(forever)).toEqual([]);
      await expect(foreign.attach(sandbox.id, forever)).rejects.toEqual(boundary("gone"));
      expect([...(await foreign.renew([sandbox.id], 60 * second, forever))]).toEqual([]);
      await scene.close(sandbox);
    });

    it("are closed once and for all", async () => {
      const sandbox = await scene.open();
      await scene.close(sandbox);
      await scene.close(sandbox);
      await scene.runtime.close(newSandboxId(), forever);
      const lost = boundary("gone");
      await expect(run(sandbox, ["true"])).rejects.toEqual(lost);
      await expect(sandbox.spawn({ command: ["true"] }, forever)).rejects.toEqual(lost);
      await expect(sandbox.readFile("/x", { maxBytes: 1 }, forever)).rejects.toEqual(lost);
      await expect(sandbox.writeFile("/x", new Uint8Array(1), {}, forever)).rejects.toEqual(lost);
      await expect(sandbox.getArchive("/x", { maxBytes: 1 }, forever)).rejects.toEqual(lost);
      await expect(sandbox.killAll(forever)).rejects.toEqual(lost);
      await expect(scene.runtime.attach(sandbox.id, forever)).rejects.toEqual(lost);
    });

    it("take a running command with them, as lost and not as failed", async () => {
      const sandbox = await scene.open();
      const running = run(sandbox, ["sleep", "631"]);
      running.catch(() => undefined);
      await said(sandbox, "sleep 0.2");
      await scene.close(sandbox);
      await expect(running).rejects.toEqual(boundary("gone"));
    });

    it("end when their lease does; renewed ones live on, but not past their life", async () => {
      const [left, kept, old] = await Promise.all([
        scene.open({ leaseMs: 4 * second }),
        scene.open({ leaseMs: 4 * second }),
        scene.open({ leaseMs: 4 * second, maxLifeMs: 7 * second }),
      ]);
      const unknown = newSandboxId();
      const renewed = await scene.runtime.renew([kept.id, old.id, unknown], 120 * second, forever);
      expect([...renewed].sort()).toEqual([kept.id, old.id].sort());
      expect(await until(() => isGone(scene, left.id), 20 * second)).toBe(true);
      expect(await until(() => isGone(scene, old.id), 20 * second)).toBe(true);
      await expect(run(left, ["true"])).rejects.toEqual(boundary("gone"));
      expect((await run(kept, ["true"])).exitCode).toBe(0);
      expect([...(await scene.runtime.renew([left.id], 60 * second, forever))]).toEqual([]);
      await scene.close(kept);
    });

    it("that can't be opened leave nothing", async () => {
      const before = (await scene.runtime.list(forever)).length;
      const bad = scene.spec({ workdir: "relative/folder" });
      await expect(scene.runtime.open(bad, forever)).rejects.toEqual(boundary("refused"));
      await expect(scene.runtime.open(scene.spec({ id: "../x" }), forever)).rejects.toEqual(boundary("refused"));
      const abort = new AbortController();
      const reason = new Error("not wanted any more");
      const opening = scene.runtime.open(scene.spec(), abort.signal);
      setTimeout(() => abort.abort(reason), 30);
      const end = await opening.then((sandbox) => scene.close(sandbox)).catch((error: unknown) => error);
      expect([undefined, reason]).toContain(end);
      expect(await until(async () => (await scene.runtime.list(forever)).length === before, 10 * second)).toBe(true);
    });

    it("are not opened twice under one name", async () => {
      const sandbox = await scene.open();
      await expect(scene.runtime.open(scene.spec({ id: sandbox.id }), forever)).rejects.toEqual(boundary("refused"));
      expect((await run(sandbox, ["true"])).exitCode).toBe(0);
      await scene.close(sandbox);
    });

    it("of an image that is nowhere say what to do, where images are taken", async () => {
      const image = { kind: "name", name: "rolldeck.invalid/nowhere:1" } as const;
      const code = scene.facts.image === null ? "refused" : "no_image";
      await expect(scene.runtime.open(scene.spec({ image }), forever)).rejects.toEqual(boundary(code));
    });

    scene.able("crash", "end with their lease when the process that opened them is killed", async () => {
      const { child, ids } = await held(scene, 3, 8 * second);
      const listed = async (): Promise<string[]> =>
        (await scene.runtime.list(forever)).map(({ id }) => id).filter((id) => ids.includes(id));
      expect((await listed()).sort()).toEqual([...ids].sort());
      child.kill("SIGKILL");
      const [reaped = ""] = ids;
      await scene.runtime.close(reaped, forever);
      expect(await listed()).not.toContain(reaped);
      expect(await until(async () => (await listed()).length === 0, 30 * second)).toBe(true);
    });

    it(`are as many as ${scene.facts.many} at once`, async () => {
      const opened = await Promise.all(
        Array.from({ length: scene.facts.many }, () =>
          scene.open({ resources: { cpus: 1, memoryMb: 64, pids: 32, diskMb: null } }),
        ),
      );
      const results = await Promise.all(
        opened.map((sandbox, at) => run(sandbox, ["sh", "-c", `echo ${at}; exit ${at}`])),
      );
      expect(results.map(({ exitCode }) => exitCode)).toEqual(opened.map((_sandbox, at) => at));
      await Promise.all(opened.map((sandbox: Sandbox) => scene.close(sandbox)));
      const left = new Set((await scene.runtime.list(forever)).map(({ id }) => id));
      expect(opened.filter(({ id }) => left.has(id))).toEqual([]);
    });
  });
}

/** A process that opened so many and holds them, without ever renewing. */
async function held(
  scene: ConformanceScene,
  count: number,
  leaseMs: number,
): Promise<{ readonly child: ChildProcess; readonly ids: readonly string[] }> {
  const specs = Array.from({ length: count }, () => scene.spec({ leaseMs }));
  const { module, environment } = scene.facts.holder;
  const words = ["--import", "tsx", holder, module, scene.deployment, JSON.stringify(specs)];
  const child = spawn(process.execPath, words, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...environment },
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", (code) => reject(new Error(`the holder ended with ${code}`)));
  });
  return { child, ids: specs.map(({ id }) => id) };
}

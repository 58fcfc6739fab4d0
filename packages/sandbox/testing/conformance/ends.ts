/** Limits of time, processes and memory: what is over is over for everything that was started, and the next command works. */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { beforeAll, describe, expect, it } from "vitest";
import { type ConformanceScene, forever, living, run, shell, text } from "./scene.ts";

/** Each leaves something that a signal to the command, or to its group, would miss. */
const stubborn: readonly (readonly [string, string])[] = [
  ["a child in the background", "sleep 611 & sleep 611"],
  ["a child in a session of its own", "setsid sleep 611 & sleep 611"],
  ["a child without environment", "env -i setsid sleep 611 & sleep 611"],
  ["a command that ignores the request to end", "trap '' TERM INT HUP; sleep 611; sleep 611"],
  ["a child that was given away", "(setsid sh -c '(sleep 611 &)' &) ; sleep 611"],
  ["a command that never stops writing", "while :; do echo sleep 611; done"],
];

const countForks = `import os, time
count = 0
try:
    while count < 150:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count, flush=True)
os._exit(0)`;

export function endCases(scene: ConformanceScene): void {
  describe("limits", () => {
    let sandbox: Sandbox;
    beforeAll(async () => {
      sandbox = await scene.open();
    });

    for (const [what, script] of stubborn) {
      it(`of time end ${what}`, async () => {
        const result = await shell(sandbox, `echo begun; ${script}`, { timeoutMs: 1_500 });
        expect([result.timedOut, result.exitCode]).toEqual([true, null]);
        expect(text(result.stdout)).toMatch(/^begun\n/);
        expect(await living(sandbox, "sleep 611")).toEqual([]);
        const next = await shell(sandbox, "echo next");
        expect([next.exitCode, text(next.stdout)]).toEqual([0, "next\n"]);
      });
    }

    it("of time tell a command that ends in time nothing", async () => {
      const result = await shell(sandbox, "sleep 0.2; echo done", { timeoutMs: 30_000 });
      expect([result.timedOut, result.exitCode, text(result.stdout)]).toEqual([false, 0, "done\n"]);
    });

    scene.able("pids", "of processes hold a fork bomb, which its time ends", async () => {
      const bomb = "bomb() { bomb | bomb & }; bomb; while :; do sleep 1; done";
      const result = await run(sandbox, ["bash", "-c", bomb], { timeoutMs: 2_500, maxOutputBytes: 4096 });
      expect([result.timedOut, result.exitCode]).toEqual([true, null]);
      expect(await living(sandbox, "bash -c bomb")).toEqual([]);
      const next = await shell(sandbox, "seq 3 | sort | tail -1");
      expect([next.exitCode, text(next.stdout)]).toEqual([0, "3\n"]);
    });

    scene.able("pids", "of processes are the number asked for", async () => {
      const result = await run(sandbox, ["python3", "-c", countForks]);
      // The one that counts is one of them.
      expect(text(result.stdout)).toBe("99\n");
      await sandbox.killAll(forever);
    });

    scene.able("memory", "of memory end the process that takes too much, and say so", async () => {
      const result = await run(sandbox, ["python3", "-c", "a = bytearray(400 << 20); print(len(a))"]);
      expect([result.exitCode, result.outOfMemory, result.stdout.bytes]).toEqual([137, true, 0]);
      const child = await shell(sandbox, `python3 -c 'a = bytearray(400 << 20)'; echo "then $?"`);
      expect(text(child.stdout)).toBe("then 137\n");
      const next = await run(sandbox, ["true"]);
      expect([next.exitCode, next.outOfMemory]).toEqual([0, false]);
    });

    scene.able("disk", "of disk hold a file that grows without end", async () => {
      const small = await scene.open({ resources: { cpus: 1, memoryMb: 256, pids: 100, diskMb: 20 } });
      const path = `${scene.facts.folder}/huge`;
      const result = await shell(small, `dd if=/dev/zero of=${path} bs=1M count=200 2>&1; wc -c <${path}`);
      expect(Number(text(result.stdout).trim().split("\n").at(-1))).toBeLessThanOrEqual(20 * 1024 * 1024);
      expect((await run(small, ["true"])).exitCode).toBe(0);
      await scene.close(small);
    });
  });
}

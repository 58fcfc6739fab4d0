/** A sandbox that is reset is as it was opened: nothing of who worked in it before is left, and nobody who held it then has it now. */
import { describe, expect, it } from "vitest";
import { boundary, type ConformanceScene, forever, living, run, said } from "./scene.ts";

export function resetCases(scene: ConformanceScene): void {
  describe("resets", () => {
    it("leave no file, process, mode or message of before, and all that its spec says", async () => {
      const { folder, smallFolder } = scene.facts;
      const sandbox = await scene.open({ environment: { FROM_SPEC: "kept" }, workdir: folder });
      const fresh = `ls -lAn ${folder} ${smallFolder} /dev/shm | sed 's/[A-Z][a-z][a-z] .* / /'; stat -c '%a %u' ${folder} ${smallFolder}`;
      const before = await said(sandbox, fresh);
      await said(
        sandbox,
        `echo mine >${folder}/planted; echo mine >${smallFolder}/.planted; echo mine >/dev/shm/planted; chmod 700 ${folder} ${smallFolder}
         export FROM_SPEC=changed; cd /; (sleep 4711 >/dev/null 2>&1 &); (while :; do echo mine >${folder}/again; sleep 0.05; done >/dev/null 2>&1 &)`,
      );
      await sandbox.writeFile(`${folder}/.bashrc`, new TextEncoder().encode("echo planted"), {}, forever);
      expect(await living(sandbox, "sleep 4711")).toHaveLength(1);
      await sandbox.reset?.(forever);
      expect(await said(sandbox, "sleep 0.2; pwd; echo $FROM_SPEC")).toBe(`${folder}\nkept`);
      expect(await said(sandbox, fresh)).toBe(before);
      expect(await living(sandbox, "sleep")).toEqual([]);
      await sandbox.reset?.(forever);
      expect(await said(sandbox, fresh)).toBe(before);
      await scene.close(sandbox);
      await expect(run(sandbox, ["true"])).rejects.toEqual(boundary("gone"));
    });

    it("keep its name, labels and bounds, and take it from whoever held it before", async () => {
      const sandbox = await scene.open({ labels: { run: "run-7", environment: "e_1" }, workdir: scene.facts.folder });
      const other = await scene.another();
      const held = await other.attach(sandbox.id, forever);
      const running = run(held, ["sleep", "4712"]);
      running.catch(() => undefined);
      await said(held, "true");
      const mine = await scene.runtime.attach(sandbox.id, forever);
      await mine.reset?.(forever);
      await expect(running).rejects.toEqual(boundary("gone"));
      await expect(run(held, ["true"])).rejects.toEqual(boundary("gone"));
      expect(mine.id).toBe(sandbox.id);
      const facts = await scene.runtime.list(forever);
      expect(facts.filter(({ id }) => id === sandbox.id)).toEqual([
        expect.objectContaining({ state: "running", labels: { run: "run-7", environment: "e_1" } }),
      ]);
      expect([...(await other.renew([sandbox.id], 60_000, forever))]).toEqual([sandbox.id]);
      const again = await other.attach(sandbox.id, forever);
      expect(await said(again, "pwd; cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '")).toBe(
        `${scene.facts.folder}\nlo`,
      );
      await scene.close(sandbox);
      expect((await scene.runtime.list(forever)).some(({ id }) => id === sandbox.id)).toBe(false);
    });

    it("of one that is gone, or that nobody waits for any more, leave nothing", async () => {
      const [gone, stopped] = await Promise.all([scene.open(), scene.open()]);
      await scene.close(gone);
      await expect(gone.reset?.(forever)).rejects.toEqual(boundary("gone"));
      await expect(stopped.reset?.(AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
      expect(await said(stopped, "echo there")).toBe("there");
      await scene.close(stopped);
      const left = await scene.runtime.list(forever);
      expect(left.filter(({ id }) => id === gone.id || id === stopped.id)).toEqual([]);
    });
  });
}

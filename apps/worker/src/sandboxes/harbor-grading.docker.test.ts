/** Harbor tasks in real containers: what agents do to be graded better than their work is, several steps, a verifier apart. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TestReport } from "@rolldeck/contracts/test-report";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testDocker } from "../../../../packages/sandbox/testing/test-docker.ts";
import { harborSet } from "../../../../packages/tasks/testing/harbor/harbor-set.ts";
import type { HarborStage } from "../../../../packages/tasks/testing/harbor/harbor-stage.ts";
import { HarborStages } from "../../../../packages/tasks/testing/harbor/harbor-stages.ts";

const docker = testDocker();

describe.skipIf(docker === null)("a Harbor task", () => {
  const runtimes = new DockerRuntimes("harbor-grading");
  const stages = new HarborStages(runtimes.docker, join(runtimes.folder, "cache"));
  afterAll(() => runtimes.close());

  describe("graded in place", () => {
    let stage: HarborStage;
    beforeAll(async () => {
      stage = await stages.begin(await stages.open(harborSet, ["tally"]));
    });
    const forged = `mkdir -p /logs/verifier; echo '{"reward": 1}' > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt`;
    const evilProgram = (path: string): string =>
      `rm -f ${path}; printf '%s\\n' '#!/bin/dash' 'mkdir -p /logs/verifier' 'echo "{\\"reward\\": 1}" > /logs/verifier/reward.json' > ${path}; chmod 755 ${path}`;

    test("hides tests and solution from the agent", async () => {
      expect(await stage.act("ls -d /tests /solution 2>/dev/null; ls /logs")).toBe("agent\nartifacts\nverifier\n");
    });

    test.each<[string, string, RegExp | null]>([
      [
        "a planted reward, and tests of its own",
        `${forged}; mkdir -p /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; echo 'import sys' > /tests/check_total.py`,
        /left files where tests and rewards go/,
      ],
      [
        "links in the place of tests and logs",
        "mkdir -p /app/mine; rm -rf /tests /logs; ln -s /app/mine /tests; ln -s /app/mine /logs; mkdir /app/mine/verifier; echo 1 > /app/mine/verifier/reward.txt",
        null,
      ],
      [
        "a process that writes the reward later",
        `setsid sh -c 'while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json; done' >/dev/null 2>&1 & sleep 0.2`,
        null,
      ],
      [
        "programs first in PATH",
        `${evilProgram("/usr/local/bin/bash")}; ${evilProgram("/usr/local/bin/python3")}; mkdir -p /app/bin; ${evilProgram("/app/bin/python3")}; echo 'export PATH=/app/bin:$PATH' | tee -a ~/.bashrc ~/.profile /etc/profile`,
        /put its own bash before the image's\nput its own python3 before the image's/,
      ],
      [
        "another python3 in the image's place, and code that python3 loads at its start",
        `${evilProgram("/usr/bin/python3")}; printf '%s\\n' 'import atexit, os' 'def f():' ' os.makedirs("/logs/verifier", exist_ok=True); open("/logs/verifier/reward.json", "w").write("1")' 'atexit.register(f)' > /usr/lib/python3/dist-packages/sitecustomize.py`,
        /added \/usr\/lib\/python3\/dist-packages\/sitecustomize\.py/,
      ],
      ["words that look like success", "echo '===== 1 passed ====='; echo 'reward 1' > /app/total.txt", null],
    ])("%s earns nothing (fault 69)", async (_, script, flag) => {
      await stage.act(`rm -f /app/total.txt; ${script}`);
      const verdict = await stage.verify();
      expect([verdict.reward, verdict.success]).toEqual([0, false]);
      if (flag === null) expect(verdict.flags?.filter((each) => !each.startsWith("left files"))).toEqual([]);
      else expect(verdict.flags?.join("\n")).toMatch(flag);
    });

    test("work earns its reward after all that, and the report says what ran", async () => {
      await stage.act("echo 42 > /app/total.txt");
      const verdict = await stage.verify();
      expect(verdict).toMatchObject({ reward: 1, success: true, parts: { reward: 1 }, flags: [] });
      expect(verdict.evidence.get("test-output.txt")).toMatch(/checking in \/app\ntotal is '42\\n'/);
      const report = TestReport.parse(JSON.parse(verdict.evidence.get("tests.json") ?? ""));
      expect(report).toMatchObject({
        grader: "harbor",
        success: true,
        command: { text: "/tests/test.sh", exitCode: 0, timedOut: false, timeoutMs: 60_000 },
        tests: [{ name: "test_total", status: "passed" }],
        metrics: { bytes: 3 },
      });
    });

    test("a worker that never saw the image before grades the same, also where a program was replaced", async () => {
      await stage.act(`echo 41 > /app/total.txt; ${evilProgram("/usr/bin/python3")}`);
      const verdict = await stage.verify(await stages.open(harborSet, ["tally"]));
      expect(verdict).toMatchObject({ reward: 0, success: false, flags: ["changed python3"] });
    });
  });

  test("without a reward there is an error that says why, never a 0; large files are no trouble (fault 36)", async () => {
    const set = join(runtimes.folder, "odd");
    const files = {
      "task.toml":
        '[environment]\ndocker_image = "rolldeck-test-base:bookworm"\nnetwork_mode = "no-network"\n[verifier]\ntimeout_sec = 20\n',
      "instruction.md": "x",
      // The agent's file says what the verifier does: one sandbox for all of it, and time for a busy machine.
      "tests/test.sh": ". /tmp/what\n",
    };
    mkdirSync(join(set, "a/tests"), { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(set, "a", name), text);
    const stage = await stages.begin(await stages.open(set, []));
    const outcome = async (script: string): Promise<unknown> => {
      await stage.act(`cat > /tmp/what <<'END'\ncd /logs/verifier\n${script}\nEND`);
      return stage.verify().then(
        ({ reward }) => reward,
        (cause: unknown) => (cause instanceof Error && "code" in cause ? cause.code : cause),
      );
    };
    expect(await outcome("exit 0")).toBe("no_reward");
    expect(await outcome(": > reward.txt")).toBe("bad_reward");
    expect(await outcome("mkdir reward.json; echo 1 > reward.txt")).toBe("bad_reward");
    expect(await outcome("head -c 2000000 /dev/zero | tr '\\0' 1 > reward.txt")).toBe("bad_reward");
    expect(await outcome("echo 1 > reward.txt; echo '{\"reward\": 0.25}' > reward.json; exit 7")).toBe(0.25);
    // Of what the tests print the ends are kept; a report of theirs that is too large costs nothing.
    expect(await outcome("echo 1 > reward.txt; yes | head -c 100M; head -c 5M /dev/zero > ctrf.json")).toBe(1);
    expect(await outcome("echo 1 > reward.txt; sleep 60")).toBe("timeout");
  });

  test("several steps: each is graded when it is answered, and the next one begins with its own words", async () => {
    const task = await stages.open(harborSet, ["two-steps"]);
    const stage = await stages.begin(task);
    expect(task.messages(stage.instance).at(-1)?.content).toMatch(/apple/);
    await stage.act("echo apple > /app/draft.txt; sleep 300 &");
    const next = await stage.answer(0);
    expect(next?.finalAnswer).toBeUndefined();
    expect(next?.context).toMatchObject({ kind: "restart", messages: [{ role: "system" }, { role: "user" }] });
    expect(JSON.stringify(next?.context)).toMatch(/final\.txt/);
    expect(await stage.act("cat style.txt; ls /tests /logs/verifier; pgrep sleep")).toBe(
      "in capitals\n/logs/verifier:\nls: cannot access '/tests': No such file or directory\n",
    );
    await stage.act("echo WRONG > /app/final.txt");
    expect(await stage.answer(1)).toBeNull();
    await stage.collect();
    // The worker that grades is another one: the first step's result is read back.
    const verdict = await stage.verify(await stages.open(harborSet, ["two-steps"]));
    expect(verdict).toMatchObject({ reward: 0.5, success: false, parts: { draft: 0.5, publish: 0 } });
    await stage.act("echo APPLE > /app/final.txt");
    expect(await stage.verify()).toMatchObject({ reward: 1, success: true });
  });

  test("a step below its min_reward is the last; an agent that gives up before the next gets 0 for it", async () => {
    const stage = await stages.begin(await stages.open(harborSet, ["two-steps"]));
    await stage.act("echo pear > /app/draft.txt");
    expect(await stage.answer(0)).toBeNull();
    await stage.collect();
    const stopped = await stage.verify();
    expect(stopped).toMatchObject({ reward: 0, success: false, parts: { draft: 0 } });
    expect(stopped.notes).toMatch(/1 of 2 steps not run/);
    const other = await stages.begin(await stages.open(harborSet, ["two-steps"]));
    await other.act("echo apple > /app/draft.txt");
    await other.collect();
    expect(await other.verify()).toMatchObject({ reward: 0.5, success: false, parts: { draft: 0.5, publish: 0 } });
  });

  test("a verifier apart sees the artifacts, byte by byte, and nothing else of the agent's", async () => {
    const task = await stages.open(harborSet, ["apart"]);
    const stage = await stages.begin(task);
    const bytes = "import sys; sys.stdout.buffer.write(bytes(range(256)))";
    await stage.act(
      `mkdir -p out; python3 -c '${bytes}' > out/bytes.bin; echo x > out/junk.tmp; echo x > notes.txt; ln -s /etc/passwd out/link; echo 1 > /logs/verifier/reward.json; mkdir /tests; echo 'echo 0' > /tests/test.sh; for name in bash python3; do printf '#!/bin/sh' > /usr/bin/$name; done`,
    );
    await stage.collect();
    expect([...stage.kept.keys()].sort()).toEqual(["artifact-1.tar.gz", "artifact-2.tar.gz", "artifacts.json"]);
    const verdict = await stage.verify();
    expect(verdict).toMatchObject({ reward: 1, success: true, flags: [] });
    stage.kept.delete("artifact-2.tar.gz");
    await expect(stage.verify()).rejects.toMatchObject({ boundary: "verifier", code: "not_collected" });
  });
});

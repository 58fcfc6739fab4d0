/** The shell tools in real containers: what stays between calls, how commands end, and what is told of it. */

import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import type { Tool, ToolContext, ToolOutcome } from "@rolldeck/contracts/ports/tool";
import type { JsonObject } from "@rolldeck/contracts/segments";
import { DockerRuntimes } from "@rolldeck/sandbox/testing/docker-runtimes";
import { testDocker } from "@rolldeck/sandbox/testing/test-docker";
import { bash } from "@rolldeck/tools/bash/bash";
import { executeBash } from "@rolldeck/tools/bash/execute-bash";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const docker = testDocker();

describe.skipIf(docker === null)("the shell in a container", () => {
  const runtimes = new DockerRuntimes("shell");
  let sandbox: Sandbox;
  let rollout = {};
  let others = new Map<string, object>();
  const signal = new AbortController().signal;

  /** One call; `asWorker` stands for the worker that makes it. */
  const call = (
    tool: Tool,
    args: JsonObject,
    settings: JsonObject = {},
    { asWorker = rollout, limitMs = 60_000, box = sandbox, abort = signal } = {},
  ): Promise<ToolOutcome> => {
    // A shell's settings are its rollout's: another rollout for other ones.
    const key = JSON.stringify(settings);
    const owner = key === "{}" ? asWorker : (others.get(key) ?? {});
    others.set(key, owner);
    const context: ToolContext = {
      ...{ instance: { shell: settings }, rollout: owner, sandbox: box, signal: abort },
      agent: { turn: 0, maxTurns: 9, contextTokens: 0, maxContextTokens: 9, calls: [] },
      deadlineMs: Date.now() + limitMs,
    };
    return tool.call(args, context);
  };
  const run = async (command: string, args: JsonObject = {}) => (await call(bash, { command, ...args })).output;

  beforeAll(async () => {
    sandbox = await runtimes.open();
  });
  afterAll(() => runtimes.close());
  beforeEach(async () => {
    rollout = {};
    others = new Map();
    await call(bash, { restart: true });
  });

  test("folder, variables, functions, aliases and options stay", async () => {
    const set = [
      "cd /usr/lib; export A='a\nb' && plain='x  y' list=(1 '2 3'); declare -A map=([k]=v)",
      "f() { echo \"f:$plain\"; }; alias hello='echo alias'; set -o pipefail; shopt -s nullglob; umask 027; readonly R=1; unset HOME",
    ];
    expect(await run(set.join("\n"))).toBe("[no output]");
    const shown =
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
      'pwd; env | grep -c "^A=a"; f; hello; echo "${list[1]} ${map[k]} $R ${HOME-none}"; umask; false | true; echo $?';
    expect(await run(`${shown}; echo /none*; cd -`)).toBe(
      "/usr/lib\n1\nf:x  y\nalias\n2 3 v 1 none\n0027\n1\n\n/tmp\n",
    );
    expect(await run("pwd; compgen -v | grep -c ROLLDECK")).toBe("/tmp\n0\n[exit code 1]");
  });

  test("another worker goes on where this one stopped", async () => {
    await run("cd /usr; export FROM=first; g() { echo $FROM; }");
    const output = (await call(bash, { command: "pwd; g" }, {}, { asWorker: {} })).output;
    expect(output).toBe("/usr\nfirst\n");
  });

  test("failures are output with an exit code, and the shell lives on", async () => {
    for (const [command, code] of [
      ["false", 1],
      ["exit 4", 4],
      ["set -e; false; echo no", 1],
      ["nosuch", 127],
      ["kill -9 $$", 137],
      ["if then", 2],
      ["echo 'open", 2],
    ] as const) {
      const outcome = await call(bash, { command });
      expect([command, outcome.error]).toEqual([command, undefined]);
      expect(outcome.output).toContain(`[exit code ${code}]`);
    }
    expect(await run("echo on; echo $-")).toMatch(/^on\n[^e]*\n$/);
    expect(await run("\nnosuch")).toContain("bash: line 2: nosuch: command not found");
    expect(await run("cd /usr; exit 3")).toBe("[exit code 3]");
    expect(await run("pwd")).toBe("/usr\n");
  });

  test("here-documents, quotes, line continuations and long commands run as written", async () => {
    expect(await run("cat <<'EOF' | tr a-z A-Z\nit's $HOME\nEOF\necho \\\n  'two  words' \"$((1 << 3))\"")).toBe(
      "IT'S $HOME\ntwo  words 8\n",
    );
    const long = "x".repeat(300_000);
    expect(await run(`x='${long}'; echo \${#x}`)).toBe("300000\n");
    expect((await call(bash, { command: "a\0b" })).error?.code).toBe("bad_arguments");
  });

  test("stdin is empty, and output may be reopened by name", async () => {
    expect(await run("cat; read -r x || echo none; echo 1; echo 2 > /dev/stderr; echo 3 | tee /dev/stdout")).toBe(
      "none\n1\n2\n3\n3\n",
    );
  });

  describe("limits (fault 38)", () => {
    test.each([
      ["a job and a command", "echo part; sleep 600 & sleep 600"],
      ["one that ignores TERM", "echo part; trap '' TERM; while :; do sleep 600; done"],
      ["other sessions without an environment", "echo part; setsid sleep 600 & (env -i setsid sleep 600 &); sleep 600"],
      ["a loop that prints", "echo part; while true; do echo .; done"],
    ])("%s: partial output, nothing of it lives on, the next command works", async (_name, command) => {
      await run("cd /usr; keep=1");
      const output = await run(command, { timeout_s: 1 });
      expect(output).toMatch(/^part\n/);
      expect(output).toMatch(/\[timed out after 1 s; the command and all it started was ended\]$/);
      expect(await run("pwd; echo $keep; pgrep -c sleep")).toBe("/usr\n1\n0\n[exit code 1]");
    });

    test("a fork bomb takes the background jobs with it, and that is said", async () => {
      await run("sleep 600 > /dev/null 2>&1 &");
      const output = await run(":(){ :|:& };: ; sleep 60", { timeout_s: 1 });
      expect(output).toContain("timed out after 1 s");
      expect(await run("echo on")).toBe("on\n");
      const lives = await run("pgrep -c sleep");
      expect([lives, lives.startsWith("1")]).toEqual([lives, !output.includes("background jobs too")]);
      await run("pkill -KILL sleep");
    });

    test("a restart ends what earlier commands left running, whichever worker they were of, and spares the set-up's", async () => {
      const other = await runtimes.open();
      try {
        const inOther = async (args: JsonObject, asWorker = rollout) =>
          (await call(bash, args, {}, { box: other, asWorker })).output;
        await other.exec({ command: ["sh", "-c", "sleep 602 > /dev/null 2>&1 &"], timeoutMs: 5000 }, signal);
        await inOther({ command: "sleep 603 > /dev/null 2>&1 & setsid sleep 603 > /dev/null 2>&1 &" }, {});
        await inOther({ command: "(trap '' TERM HUP; sleep 603; sleep 603) > /dev/null 2>&1 &" });
        await expect.poll(() => inOther({ command: "pgrep -c sleep" })).toBe("4\n");
        expect(await inOther({ restart: true })).toBe("[the shell was restarted]");
        expect(await inOther({ command: "pgrep -a sleep | cut -d' ' -f2-" })).toBe("sleep 602\n");
      } finally {
        await runtimes.docker.close(other.id, signal);
      }
    });

    test("a fork bomb in the background is ended by a restart, and that is said", async () => {
      await call(bash, { command: ":(){ :|:& };: > /dev/null 2>&1 &", timeout_s: 2 });
      await call(bash, { command: "echo there", timeout_s: 2 }).catch(() => undefined);
      const { output } = await call(bash, { restart: true });
      expect(output).toMatch(/^\[the shell was restarted\]/);
      expect(await run("echo on; pgrep -c bash")).toMatch(/^on\n[1-5]\n$/);
    });

    test("the call's own limit leaves time to end the command and to tell", async () => {
      const outcome = await call(bash, { command: "echo part; sleep 600" }, {}, { limitMs: 5000 });
      expect(outcome.output).toMatch(/^part\n\[timed out after 2\.\d s/);
    });

    test("a call that fails leaves a shell that works, and its command is ended", async () => {
      let fails = true;
      const asWorker = {};
      const box = new Proxy(sandbox, {
        get: (target, name) => {
          if (name === "exec" && fails)
            return async () => {
              throw new BoundaryError("sandbox", "unavailable", "not now", { retryable: true });
            };
          const member: unknown = Reflect.get(target, name, target);
          return typeof member === "function" ? member.bind(target) : member;
        },
      });
      await expect(call(bash, { command: "sleep 600", timeout_s: 0.5 }, {}, { box, asWorker })).rejects.toThrow(
        "not now",
      );
      fails = false;
      const { output, error } = await call(bash, { command: "pgrep -c sleep" }, {}, { box, asWorker });
      expect([output, error]).toEqual([
        "0\n[a command that still ran in this shell was ended]\n[exit code 1]",
        undefined,
      ]);
    });

    test("an aborted call leaves a shell that works", async () => {
      const abort = new AbortController();
      const call1 = call(bash, { command: "cd /usr; sleep 600" }, {}, { abort: abort.signal });
      await expect.poll(() => run2("pgrep -c sleep")).toContain("1");
      abort.abort(new Error("enough"));
      await expect(call1).rejects.toThrow("enough");
      expect(await run("pgrep -c sleep")).toMatch(/ended\]|^0/);
    });
    test("what an aborted command left running takes no output of later commands", async () => {
      const abort = new AbortController();
      const cut = call(bash, { command: "setsid sleep 600 & sleep 600" }, {}, { abort: abort.signal });
      await expect.poll(() => run2("pgrep -c sleep")).toContain("2");
      abort.abort(new Error("enough"));
      await expect(cut).rejects.toThrow("enough");
      await run(":");
      for (let nth = 0; nth < 10; nth += 1) expect(await run("echo on", { timeout_s: 3 })).toBe("on\n");
    });

    /** Beside the shell. */
    const run2 = async (command: string) => {
      const { stdout } = await sandbox.exec({ command: ["bash", "-c", command], timeoutMs: 5000 }, signal);
      return Buffer.from(stdout.head).toString();
    };
  });

  describe("background jobs", () => {
    test("live on, print into no later output, and outlive a limit of another command", async () => {
      expect(await run("(while sleep 0.1; do echo noise; done) & echo started")).toBe("started\n");
      expect(await run("sleep 0.5; echo second")).toBe("second\n");
      expect(await run("sleep 60", { timeout_s: 0.5 })).toContain("timed out");
      expect(await run("sleep 0.3; echo third; pgrep -fc 'noise' > /dev/null; pgrep -c bash")).toMatch(/^third\n[2-9]/);
      await run("pkill -P 1 bash; pkill sleep");
    });
  });

  describe("output (faults 36, 37, 40)", () => {
    test.each([
      [999, null],
      [1000, null],
      [1001, 1001],
    ])("%d bytes against a limit of 1000", async (bytes, whole) => {
      const outcome = await call(
        bash,
        { command: `head -c ${bytes} /dev/zero | tr '\\0' x` },
        { maxOutputBytes: 1000 },
      );
      expect(outcome.wholeBytes ?? null).toBe(whole);
      if (whole !== null) expect(outcome.output).toContain("[... 1 of 1001 bytes cut ...]");
      else expect(outcome.output).toBe("x".repeat(bytes));
    });

    test("100 MB of errors, and one line of 20 MB", async () => {
      for (const command of ["yes | head -c 104857600 >&2", "head -c 20000000 /dev/zero | tr '\\0' y"]) {
        const { output, wholeBytes } = await call(bash, { command }, { maxOutputBytes: 4096 });
        expect([wholeBytes, output.length < 4200]).toEqual([
          command.startsWith("head") ? 20_000_000 : 104_857_600,
          true,
        ]);
        expect(output).toContain("bytes cut ...]");
      }
    });

    test("no character is cut in half, and what is no text is replaced", async () => {
      for (const maxOutputBytes of [64, 65, 66, 67]) {
        const { output } = await call(bash, { command: "printf '🙂é%.0s' {1..40}" }, { maxOutputBytes });
        expect(output).not.toMatch(/\p{Surrogate}/u);
        expect(output).not.toContain("\ufffd");
      }
      expect(await run("printf 'a\\xffb\\0c'")).toBe("a\ufffdb\0c");
    });
  });

  test("what a command does to the shell itself", async () => {
    await run("cd /usr");
    expect(await run("kill -9 -1")).toContain("the shell was ended");
    expect(await run("pwd")).toBe("/usr\n");
    await run("exec sleep 0");
    expect(await run("pwd")).toBe("/usr\n");
    const output = await run("cd /; rm -rf /tmp/.rolldeck* /var/tmp/.rolldeck*");
    expect(output).toContain("its state could not be kept");
    expect(await run("echo on")).toBe("on\n");
    expect(await run("PATH=; cd /usr")).toBe("[no output]");
    expect(await run("pwd; PATH=/usr/bin:/bin")).toBe("/usr\n");
  });

  test("no state where the task wants none, and its own start where it wants one", async () => {
    const stateless = (command: string) => call(bash, { command }, { stateless: true }, { asWorker: other });
    const other = {};
    expect((await stateless("cd /usr; X=1")).output).toBe("[no output]");
    expect((await stateless("pwd; echo $X-")).output).toBe("/tmp\n-\n");
    const box = await runtimes.open();
    const settings = { startup: "START=yes; cd /usr; echo unseen", environment: { GIVEN: "1" } };
    expect((await call(bash, { command: "echo $START $GIVEN; pwd" }, settings, { box, asWorker: {} })).output).toBe(
      "yes 1\n/usr\n",
    );
    await runtimes.docker.close(box.id, signal);
    await expect(call(bash, { command: "true" }, { stateles: true }, { asWorker: {} })).rejects.toMatchObject({
      boundary: "infrastructure",
      code: "bad_instance",
    });
  });

  test("a sandbox that went away is an ending, not output", async () => {
    const box = await runtimes.open();
    const asWorker = {};
    await call(bash, { command: "cd /usr" }, {}, { box, asWorker });
    const busy = call(bash, { command: "sleep 60" }, {}, { box, asWorker });
    const lost = expect(busy).rejects.toMatchObject({ boundary: "sandbox", code: "gone" });
    await runtimes.docker.close(box.id, signal);
    await lost;
    await expect(call(bash, { command: "true" }, {}, { box, asWorker })).rejects.toMatchObject({ code: "gone" });
  });

  describe("execute_bash", () => {
    const quick = { quietMs: 700 };
    const say = async (command: string, args: JsonObject = {}) =>
      (await call(executeBash, { command, ...args }, quick)).output;

    test("ends each observation with exit code and folder", async () => {
      expect(await say("cd /usr; echo hi")).toBe(
        "hi\n[The command completed with exit code 0.]\n[Current working directory: /usr]\n[Command finished with exit code 0]",
      );
      expect(await say("ls /none 2>&1; false")).toContain("\n[The command completed with exit code 1.]\n");
    });

    test("a quiet command runs on: it can be waited for, told things and interrupted", async () => {
      expect(await say("")).toBe("ERROR: No previous running command to retrieve logs from.");
      expect(await say("C-c", { is_input: "true" })).toBe("ERROR: No previous running command to interact with.");
      expect(await say("echo first; read -r x; echo got $x; sleep 60")).toMatch(
        /^first\n\[The command has no new output after 0\.7 seconds\. You may wait longer/,
      );
      expect(await say("ls")).toContain('[Your command "ls" is NOT executed. The previous command is still running');
      expect(await say("a b", { is_input: true })).toMatch(
        /^\[Below is the output of the previous command\.\]\ngot a b\n/,
      );
      expect(await say("C-c", { is_input: "true" })).toContain(
        "[The command completed with exit code 130. CTRL+C was sent.]\n",
      );
      expect(await say("echo next")).toMatch(/^next\n/);
    });

    test("a limit leaves it running, and the end of its input ends what reads it", async () => {
      expect(await say("python3", { timeout: 0.5 })).toContain("[The command timed out after 0.5 seconds. ");
      await say("print(40 + 2)", { is_input: "true" });
      expect(await say("C-d")).toMatch(/\n42\n\[The command completed with exit code 0\. CTRL\+D was sent\.\]/);
    });

    test("one that ended meanwhile is told once", async () => {
      await say("sleep 1; echo late");
      await expect.poll(() => say("")).toContain("late\n[The command completed with exit code 0.]");
      expect(await say("")).toContain("ERROR: No previous running command");
    });
  });
});

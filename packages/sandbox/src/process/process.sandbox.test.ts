/** Sandboxes of namespaces, really made. Where this machine can't make any, the suite is skipped and says why. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { noResources, type Sandbox, type SandboxRuntime, type SandboxSpec } from "@rolldeck/contracts/ports/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { describeConformance } from "../../testing/conformance.ts";
import { makeRuntime, stateVariable } from "../../testing/process-runtime.ts";
import { parseSandboxSettings } from "../settings.ts";
import { hostAilment } from "./host-ailment.ts";
import { ProcessRuntime } from "./process-runtime.ts";

const ailment = await hostAilment();
if (ailment !== null) console.warn(`process sandboxes are not tested: ${ailment}`);

const conformanceFolder = await mkdtemp(join(tmpdir(), "rolldeck-process-"));
process.env[stateVariable] = conformanceFolder;
const asRoot = process.getuid?.() === 0;

describe.skipIf(ailment !== null)("as every runtime", () => {
  afterAll(() => rm(conformanceFolder, { recursive: true, force: true }));
  describeConformance("process", makeRuntime, {
    ...{
      image: null,
      folder: "/home/agent",
      smallFolder: "/tmp",
      otherUser: "root",
      many: 64,
      resets: true,
      keepsBoundingSet: true,
    },
    told: { users: /users/, ...(asRoot ? {} : { memory: /memory/ }) },
    holder: {
      module: fileURLToPath(new URL("../../testing/process-runtime.ts", import.meta.url)),
      environment: { [stateVariable]: conformanceFolder },
    },
  });
});

let count = 0;
const nextId = (): string => {
  count += 1;
  return `sbx_${process.pid.toString(36)}${count.toString(36)}`.padEnd(24, "x");
};
const spec = (changes: Partial<SandboxSpec> = {}): SandboxSpec => ({
  ...{ id: nextId(), labels: { purpose: "test" }, image: null, workdir: null, environment: { GIVEN: "yes" } },
  resources: { ...noResources, memoryMb: 256, pids: 64, diskMb: 16 },
  ...{ network: { mode: "none" }, services: [], mounts: [], leaseMs: 120_000, maxLifeMs: 600_000 },
  ...changes,
});
const signal = new AbortController().signal;
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8");

describe.skipIf(ailment !== null)("process sandboxes", () => {
  let stateFolder: string;
  let runtime: SandboxRuntime;
  let sandbox: Sandbox;
  const scene = () => ({
    settings: parseSandboxSettings({}, "/"),
    ...{ deployment: "test", stateFolder, onTrouble: () => {} },
  });
  const sh = async (script: string, box: Sandbox = sandbox) => {
    const result = await box.exec({ command: ["bash", "-c", script], timeoutMs: 20_000 }, signal);
    return { code: result.exitCode, out: text(result.stdout.head), err: text(result.stderr.head), result };
  };

  beforeAll(async () => {
    stateFolder = await mkdtemp(join(tmpdir(), "rolldeck-process-"));
    runtime = new ProcessRuntime(scene());
    sandbox = await runtime.open(spec(), signal);
  });
  afterAll(async () => {
    for (const { id } of await runtime.list(signal)) await runtime.close(id, signal);
    await rm(stateFolder, { recursive: true, force: true });
  });

  test("commands run as nobody, with nothing of the host's but its programs", async () => {
    const { out } = await sh('id -un; pwd; echo "$GIVEN"; env | cut -d= -f1 | sort | tr "\\n" " "');
    expect(out).toBe("nobody\n/home/agent\nyes\nGIVEN HOME LANG OLDPWD PATH PWD SHLVL USER _ ");
    const seen = await sh("ls -A /root /home /run /var; ls /etc/shadow /etc/ssh /sys; cat /proc/1/environ");
    expect(seen.out).toContain("agent");
    expect(seen.out).not.toContain("ROLLDECK");
    expect(seen.err).toContain("/etc/shadow");
    expect(seen.err).toContain("/sys");
  });

  test("a command is never looked for in the host's environment or search path", async () => {
    const evil = { PATH: "/tmp/evil:/usr/bin:/bin", LD_PRELOAD: "/tmp/evil.so", BASH_ENV: "/tmp/evil.sh" };
    const result = await sandbox.exec(
      { command: ["/bin/sh", "-c", 'echo "$PATH"'], environment: evil, timeoutMs: 5000 },
      signal,
    );
    expect(text(result.stdout.head)).toBe(`${evil.PATH}\n`);
  });

  test.each([
    ["a new user namespace", "unshare -U true"],
    ["a mount", "mount -t tmpfs none /tmp"],
    ["a root folder of its own", "chroot / true"],
    ["a device", "mknod /tmp/disk b 8 0"],
    ["a system setting", "echo 1 > /proc/sys/kernel/panic"],
    ["the system's programs", "touch /usr/bin/x"],
    ["the root folder", "touch /x"],
    ["the folder of devices", "touch /dev/x"],
    ["the memory of the machine", "cat /dev/mem"],
    ["the program every command passes through", "cat /opt/rolldeck/enter"],
    ["the metadata address", "exec 3<> /dev/tcp/169.254.169.254/80"],
    ["the Docker socket", "ls /var/run/docker.sock"],
    [
      "another process's memory",
      "sleep 5 & python3 -c 'import ctypes, sys; sys.exit(0 if ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) == 0 else 1)' \"$!\"",
    ],
    ["the hypervisor's sockets", "python3 -c 'import socket; socket.socket(40, 1)'"],
    [
      "the kernel's keys",
      "python3 -c 'import ctypes, sys; sys.exit(0 if ctypes.CDLL(None).syscall(250, 0, -3, 1) >= 0 else 1)'",
    ],
  ])("it can't have %s", async (_what, command) => {
    const { code, err } = await sh(command);
    expect(code).not.toBe(0);
    expect(err).not.toMatch(/command not found|SyntaxError|NameError/);
  });

  test("threads, sub-processes and loopback work all the same", async () => {
    const script =
      "import socket, subprocess, threading\n" +
      "server = socket.create_server(('127.0.0.1', 0))\n" +
      "thread = threading.Thread(target=lambda: server.accept()[0].sendall(b'hello'))\nthread.start()\n" +
      "print(socket.create_connection(server.getsockname()).recv(5), subprocess.run(['echo', 'sub'], capture_output=True).stdout)";
    const result = await sandbox.exec({ command: ["python3", "-c", script], timeoutMs: 10_000 }, signal);
    expect(text(result.stdout.head)).toBe("b'hello' b'sub\\n'\n");
  });

  test("nothing in it ends process 1, and orphans are buried", async () => {
    await sh("kill -9 1; kill 1; kill -STOP 1; kill -9 -1");
    await sh("for i in 1 2 3; do (sleep 0.1 &) ; done; sleep 0.4");
    expect((await sh("ps -e -o stat= | grep -c Z")).out).toBe("0\n");
  });

  test("a limit ends all that was started, in whatever session", async () => {
    const command = ["bash", "-c", "trap '' TERM; setsid sleep 601 & (env -i setsid sleep 602 &); echo on; sleep 603"];
    const result = await sandbox.exec({ command, timeoutMs: 400 }, signal);
    expect([result.timedOut, result.exitCode, text(result.stdout.head)]).toEqual([true, null, "on\n"]);
    expect((await sh("pgrep -c sleep")).out).toBe("0\n");
  });

  test.runIf(asRoot)("when everything was ended, nothing is left for even a moment", async () => {
    const own = await runtime.open(
      spec({ resources: { ...noResources, memoryMb: 1024, pids: 64, diskMb: 16 } }),
      signal,
    );
    const { cgroups } = z
      .object({ record: z.object({ cgroups: z.object({ joins: z.array(z.string()) }) }) })
      .parse(own).record;
    // Asked of the kernel, at once: entering the sandbox to look takes longer than a process needs to go.
    const members = () =>
      readFileSync(cgroups.joins[0] ?? "", "utf8")
        .trim()
        .split("\n").length;
    await own.killAll(signal);
    const idle = members();
    const hold = "import time; a = bytearray(24 << 20); print('up', flush=True); time.sleep(600)";
    for (let round = 0; round < 5; round += 1) {
      const talk = await own.spawn(
        { command: ["bash", "-c", `for i in {1..24}; do setsid python3 -c "${hold}" & done; wait`] },
        signal,
      );
      let up = 0;
      for await (const chunk of talk.stdout) {
        up += text(chunk).split("up").length - 1;
        if (up === 24) break;
      }
      await own.killAll(signal);
      // The one that was asked for, outside.
      await talk.wait();
      expect(members()).toBe(idle);
    }
    await runtime.close(own.id, signal);
  });

  test("two who end everything at a time both succeed", async () => {
    await Promise.all(Array.from({ length: 6 }, () => sandbox.killAll(signal)));
    expect((await sh("echo on")).out).toBe("on\n");
  });

  test("a fork bomb ends with its limit", async () => {
    const result = await sandbox.exec({ command: ["bash", "-c", ":(){ :|:& };: ; sleep 60"], timeoutMs: 700 }, signal);
    expect(result.timedOut).toBe(true);
    expect(Number((await sh("ps -e | wc -l")).out)).toBeLessThan(10);
  });

  test("streams are exact, and their middle is dropped past the cap", async () => {
    const input = Buffer.from([0, 255, 10, 0, 13]);
    const echoed = await sandbox.exec({ command: ["cat"], stdin: input, timeoutMs: 5000 }, signal);
    expect(Buffer.from(echoed.stdout.head)).toEqual(input);
    const long = await sandbox.exec(
      { command: ["bash", "-c", "head -c 100000000 /dev/zero >&2; exit 3"], maxOutputBytes: 1000, timeoutMs: 20_000 },
      signal,
    );
    const { head, tail, gapBytes, bytes } = long.stderr;
    expect([long.exitCode, head.length, tail.length, gapBytes, bytes]).toEqual([3, 500, 500, 99_999_000, 100_000_000]);
    const flood = await sandbox.exec({ command: ["yes"], maxReadBytes: 1_000_000, timeoutMs: 20_000 }, signal);
    expect([flood.flooded, flood.exitCode]).toEqual([true, null]);
  });

  test("signals, missing programs and missing folders have the shell's exit codes", async () => {
    expect((await sh("kill -9 $$")).code).toBe(137);
    expect((await sandbox.exec({ command: ["nosuch"], timeoutMs: 5000 }, signal)).exitCode).toBe(127);
    expect((await sandbox.exec({ command: ["true"], cwd: "/nowhere", timeoutMs: 5000 }, signal)).exitCode).toBe(126);
  });

  test("the disk has an end", async () => {
    expect((await sh("head -c 100000000 /dev/zero > /tmp/large; stat -c %s /tmp/large; rm /tmp/large")).out).toBe(
      `${16 * 1024 * 1024}\n`,
    );
    await expect(sandbox.writeFile("/tmp/large", new Uint8Array(20_000_000), {}, signal)).rejects.toMatchObject({
      code: "no_space",
    });
    expect((await sh("ls -A /tmp")).out).toBe("");
  });

  test.runIf(process.getuid?.() === 0)("too much memory ends the command, not the sandbox", async () => {
    const { result } = await sh("python3 -c 'bytearray(600 << 20)'");
    expect([result.exitCode, result.outOfMemory]).toEqual([137, true]);
    expect((await sh("echo on")).out).toBe("on\n");
  });

  test("files are whole, and what can't be read says why", async () => {
    await sandbox.writeFile("/tmp/a/b c/file", Buffer.from("x\0y"), { mode: 0o750 }, signal);
    expect(text(await sandbox.readFile("/tmp/a/b c/file", { maxBytes: 3 }, signal))).toBe("x\0y");
    await sandbox.writeFile("/tmp/a/b c/file", Buffer.from("new"), {}, signal);
    expect((await sh("stat -c %a '/tmp/a/b c/file'; ls -A '/tmp/a/b c'")).out).toBe("750\nfile\n");
    const code = (path: string) => sandbox.readFile(path, { maxBytes: 2 }, signal).catch((error) => error.code);
    expect(await code("/tmp/a/b c/file")).toBe("too_large");
    expect([await code("/tmp/none"), await code("/tmp"), await code("/dev/zero"), await code("a")]).toEqual([
      ...["not_found", "is_directory", "bad_path", "not_found"],
    ]);
    await expect(sandbox.writeFile("/usr/x", new Uint8Array(1), {}, signal)).rejects.toMatchObject({ code: "denied" });
    const tar = await sandbox.getArchive("/tmp/a", { maxBytes: 100_000 }, signal);
    await sandbox.putArchive("/tmp/z", tar, {}, signal);
    expect((await sh("cat '/tmp/z/a/b c/file'")).out).toBe("new");
    await expect(sandbox.getArchive("/tmp/a", { maxBytes: 100 }, signal)).rejects.toMatchObject({ code: "too_large" });
    await expect(sandbox.getArchive("/tmp/none", { maxBytes: 100 }, signal)).rejects.toMatchObject({
      code: "not_found",
    });
  });

  test("a terminal can be had and resized", async () => {
    const shell = await sandbox.spawn({ command: ["bash", "--norc"], tty: { columns: 81, rows: 25 } }, signal);
    const output = shell.stdout[Symbol.asyncIterator]();
    let seen = "";
    const until = async (words: string) => {
      while (!seen.includes(words)) {
        const { value, done } = await output.next();
        if (done) throw new Error(`ended with ${seen}`);
        seen += text(value);
      }
    };
    await shell.write(Buffer.from("stty size\n"));
    await until("25 81");
    await shell.resize?.(100, 30);
    await shell.write(Buffer.from("stty size; exit 5\n"));
    await until("30 100");
    expect((await shell.wait()).exitCode).toBe(5);
    await shell.close();
  });

  test("another process of the deployment finds it, renews it and ends it", async () => {
    const mine = await runtime.open(spec(), signal);
    const other: SandboxRuntime = new ProcessRuntime(scene());
    await mine.writeFile("/tmp/note", Buffer.from("here"), {}, signal);
    const found = await other.attach(mine.id, signal);
    expect(text(await found.readFile("/tmp/note", { maxBytes: 10 }, signal))).toBe("here");
    expect(await other.renew([mine.id, "sbx_00000000000000000000"], 60_000, signal)).toEqual(new Set([mine.id]));
    expect((await other.list(signal)).find(({ id }) => id === mine.id)).toMatchObject({ state: "running" });
    await other.close(mine.id, signal);
    await expect(mine.exec({ command: ["true"], timeoutMs: 1000 }, signal)).rejects.toMatchObject({ code: "gone" });
    await expect(other.attach(mine.id, signal)).rejects.toMatchObject({ code: "gone" });
    await other.close(mine.id, signal);
    expect(await readdir(join(stateFolder, "process", "test"))).not.toContain(mine.id);
  });

  test("it ends by itself when its lease has passed, however busy it is", async () => {
    const short = await runtime.open(spec({ leaseMs: 1000 }), signal);
    const busy = short.exec({ command: ["bash", "-c", "trap '' TERM; sleep 600"], timeoutMs: 60_000 }, signal);
    await expect(busy).rejects.toMatchObject({ boundary: "sandbox", code: "gone" });
    // Its keeper clears up behind it.
    await expect.poll(() => readdir(join(stateFolder, "process", "test")), { timeout: 20_000 }).not.toContain(short.id);
  });

  test("nothing is left of a process that was killed while it opened some", async () => {
    const module = fileURLToPath(new URL("../../testing/process-runtime.ts", import.meta.url));
    const holder = fileURLToPath(new URL("../../testing/conformance/hold-sandboxes.ts", import.meta.url));
    const specs = Array.from({ length: 12 }, () => spec({ leaseMs: 4_000 }));
    const child = spawn(process.execPath, ["--import", "tsx", holder, module, "killed", JSON.stringify(specs)], {
      stdio: "ignore",
      env: { ...process.env, [stateVariable]: stateFolder },
    });
    const root = join(stateFolder, "process", "killed");
    const folders = () => readdir(root).catch(() => []);
    await expect.poll(folders, { timeout: 30_000, interval: 2 }).not.toEqual([]);
    child.kill("SIGKILL");
    const other: SandboxRuntime = new ProcessRuntime({ ...scene(), deployment: "killed" });
    await expect
      .poll(async () => [await other.list(signal), await folders()], { timeout: 60_000, interval: 500 })
      .toEqual([[], []]);
    const groups = ["", "memory", "pids", "cpu"].map((name) => join("/sys/fs/cgroup", name));
    const left = (await Promise.all(groups.map((group) => readdir(group).catch(() => [])))).flat();
    expect(left.filter((name) => specs.some(({ id }) => name.includes(id)))).toEqual([]);
  });

  test("renewing is no way past its whole life", async () => {
    const short = await runtime.open(spec({ maxLifeMs: 1000 }), signal);
    await runtime.renew([short.id], 600_000, signal);
    await expect.poll(() => readdir(join(stateFolder, "process", "test")), { timeout: 20_000 }).not.toContain(short.id);
  });

  test("what it can't give is refused, and nothing is left", async () => {
    const refused: Partial<SandboxSpec>[] = [
      { image: { kind: "name", name: "debian" } },
      { network: { mode: "public" } },
      { user: "root" },
      { workdir: "/usr/lib" },
      { id: "../../etc" },
    ];
    for (const changes of refused) {
      await expect(runtime.open(spec(changes), signal)).rejects.toMatchObject({ boundary: "sandbox", code: "refused" });
    }
    await expect(sandbox.exec({ command: ["true"], user: "root", timeoutMs: 1000 }, signal)).rejects.toMatchObject({
      code: "refused",
    });
    const broken = spec({ mounts: [{ source: "/nowhere-at-all", target: "/mnt", readOnly: true }] });
    await expect(runtime.open(broken, signal)).rejects.toThrow(/nowhere-at-all/);
    expect(await readdir(join(stateFolder, "process", "test"))).not.toContain(broken.id);
  });
});

/** Ways out that are tried: each must fail, and the sandbox must not have noticed. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ConformanceScene, forever, run, said, shell, text } from "./scene.ts";

/** Scripts that print `out` where they got through. */
const attempts: readonly (readonly [string, string])[] = [
  [
    "reading the machine's memory",
    "head -c 1 /dev/mem >/dev/null 2>&1 && echo out; head -c 1 /dev/kmem 2>/dev/null && echo out",
  ],
  [
    "making a device of its memory",
    "mknod /tmp/mem c 1 1 2>/dev/null && head -c 1 /tmp/mem >/dev/null 2>&1 && echo out",
  ],
  [
    "making a device of its disk",
    "for d in '8 0' '253 0' '254 0'; do mknod /tmp/disk b $d 2>/dev/null && head -c 1 /tmp/disk >/dev/null 2>&1 && echo out; done",
  ],
  [
    "reading its disks",
    "for d in /dev/sd? /dev/vd? /dev/nvme?n? /dev/dm-?; do [ -e $d ] && head -c 1 $d >/dev/null 2>&1 && echo out; done",
  ],
  [
    "changing kernel settings",
    "(echo x >/proc/sys/kernel/hostname || echo 1 >/proc/sys/vm/drop_caches || echo 1 >/proc/sys/kernel/panic) 2>/dev/null && echo out",
  ],
  ["asking the kernel to restart", "echo b >/proc/sysrq-trigger 2>/dev/null && echo out"],
  ["naming a program for core dumps", "echo '|/tmp/x' >/proc/sys/kernel/core_pattern 2>/dev/null && echo out"],
  [
    "changing devices' settings",
    "(echo 1 >/sys/kernel/mm/ksm/run || echo x >/sys/kernel/uevent_helper || echo mem >/sys/power/state) 2>/dev/null && echo out",
  ],
  [
    "naming a program for empty control groups",
    "for f in $(ls -d /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/release_agent 2>/dev/null); do echo /tmp/x >$f && echo out; done 2>/dev/null",
  ],
  [
    "raising its own limits",
    "for f in $(ls -d /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null); do echo 99999999999 >$f && echo out; done 2>/dev/null",
  ],
  ["mounting", "(mount -t tmpfs none /mnt || mount -t proc none /mnt || mount --bind / /mnt) 2>/dev/null && echo out"],
  ["changing the root", "chroot / true 2>/dev/null && echo out"],
  ["setting the clock", "date -s '2001-01-01' >/dev/null 2>&1 && echo out"],
  ["reading the kernel's log", "dmesg 2>/dev/null | grep -q . && echo out"],
  [
    "a set-id program",
    "cp /bin/sh /tmp/su 2>/dev/null && chmod 6755 /tmp/su 2>/dev/null; p='import os; os.setuid(12345)'; python3 -c \"$p\" 2>/dev/null && echo out; true",
  ],
  ["becoming another user", "python3 -c 'import os; os.setgid(1); os.setuid(1); print(\"out\")' 2>/dev/null"],
  [
    "ending its keeper",
    "kill -9 1 2>/dev/null; kill -TERM 1 2>/dev/null; kill -STOP 1 2>/dev/null; kill -INT 1 2>/dev/null; true",
  ],
  [
    "the daemon's socket",
    "for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do [ -e $s ] && echo out; done; true",
  ],
];

const connect = (host: string, port: number): string => `import socket
try:
    socket.create_connection(("${host}", ${port}), 3)
    print("out")
except OSError as error:
    print("closed")`;

export function escapeCases(scene: ConformanceScene): void {
  describe("escapes", () => {
    let sandbox: Sandbox;
    let server: Server;
    let folder: string;
    let port: number;

    beforeAll(async () => {
      sandbox = await scene.open();
      folder = mkdtempSync(join(tmpdir(), "rolldeck-secret-"));
      writeFileSync(join(folder, "secret"), "of the machine");
      server = createServer((socket) => socket.end("hello"));
      port = await new Promise<number>((resolve) => {
        server.listen(0, "0.0.0.0", () => {
          const address = server.address();
          resolve(typeof address === "object" && address !== null ? address.port : 0);
        });
      });
    });
    afterAll(() => {
      server.close();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const [what, script] of attempts) {
      it(`by ${what}`, async () => {
        const result = await shell(sandbox, script, { timeoutMs: 20_000 });
        expect(text(result.stdout)).not.toContain("out");
        expect(await said(sandbox, "echo still here")).toBe("still here");
      });
    }

    it("by the machine's files", async () => {
      const paths = [
        folder,
        `/proc/1/root${folder}`,
        `/proc/self/root${folder}`,
        `${"../".repeat(30)}${folder.slice(1)}`,
      ];
      for (const path of paths) {
        const reading = sandbox.readFile(`${path}/secret`, { maxBytes: 100 }, forever);
        await expect(reading).rejects.toEqual(expect.objectContaining({ name: "SandboxFileError" }));
      }
      expect(text((await shell(sandbox, `cat ${folder}/secret`)).stdout)).toBe("");
    });

    it("by any network: other addresses, the machine's own, and those that tell secrets", async () => {
      for (const [host, to] of [
        ["169.254.169.254", 80],
        ["127.0.0.1", port],
        ["1.1.1.1", 53],
        ["10.0.0.1", 80],
      ] as const) {
        const result = await run(sandbox, ["python3", "-c", connect(host, to)], { timeoutMs: 20_000 });
        expect([host, text(result.stdout).trim()]).toEqual([host, "closed"]);
      }
      const interfaces = await said(sandbox, "ls /sys/class/net 2>/dev/null || sed -n '3,$s/:.*//p' /proc/net/dev");
      expect(interfaces.split(/\s+/).filter((name) => name !== "" && name !== "lo")).toEqual([]);
    });

    it("do not cost it its own loopback", async () => {
      const script = `import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"), daemon=True).start()
print(socket.create_connection(("localhost", server.getsockname()[1]), 3).recv(5).decode())`;
      const result = await run(sandbox, ["python3", "-c", script]);
      expect([text(result.stdout), text(result.stderr)]).toEqual(["hello\n", ""]);
    });

    it("by capabilities: there are none, and none can be had", async () => {
      const status = await said(sandbox, "grep -E '^(Cap(Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status");
      const facts = Object.fromEntries(status.split("\n").map((line) => line.split(/:\s*/)));
      for (const set of ["CapPrm", "CapEff", "CapAmb", ...(scene.facts.keepsBoundingSet ? [] : ["CapBnd"])])
        expect([set, facts[set]]).toEqual([set, "0".repeat(16)]);
      expect([facts.NoNewPrivs, facts.Seccomp]).toEqual(["1", "2"]);
    });

    it("by other sandboxes: neither processes nor files are theirs", async () => {
      const other = await scene.open();
      await said(other, `echo secret >${scene.facts.folder}/theirs; sleep 641 >/dev/null 2>&1 &`);
      expect(text((await shell(sandbox, `cat ${scene.facts.folder}/theirs`)).stdout)).toBe("");
      const words = await said(sandbox, "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true");
      expect(words).not.toContain("sleep 641");
      await scene.close(other);
    });
  });
}

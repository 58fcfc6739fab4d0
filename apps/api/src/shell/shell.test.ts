/** A shell in a sandbox over the real socket: who may, what is written down, what bounds it, and that nothing is left of it. */
import { EventPage } from "@rolldeck/contracts/api/runs";
import type { ShellEnd } from "@rolldeck/contracts/wire/shell";
import { seedRun, seedStep } from "@rolldeck/db/testing/seed-run";
import { seedSandbox } from "@rolldeck/db/testing/seed-sandbox";
import { ShellConnection } from "@rolldeck/realtime/client/shell-connection";
import { rawShellSocket } from "@rolldeck/realtime/testing/raw-shell-socket";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { type LocalShells, localShells } from "../../testing/local-shells.ts";
import { jsonPost, startTestApi, type TestApi } from "../../testing/start-api.ts";
import { createLog } from "../log.ts";

let api: TestApi;
let local: LocalShells;
let runId: string;
let rolloutId: string;
const opened: ShellConnection[] = [];
beforeAll(async () => {
  local = localShells();
  api = await startTestApi({}, createLog("silent"), {
    runtime: async () => local.runtime,
    shellLimits: { shells: 2, bytesPerSecond: 20_000_000, idleMs: 60_000, checkMs: 20 },
  });
  runId = await seedRun(api.database.pool);
  rolloutId = (await seedStep(api.database.pool, runId, { step: 1, rollouts: [{ reward: null, ending: null }] }))
    .rolloutIds[0] as string;
});
afterEach(async () => {
  for (const shell of opened.splice(0)) shell.close();
  await until(() => expect(local.running()).toBe(0));
});
afterAll(() => api.close());

const until = (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 20_000, interval: 10 });
const seed = (state: "open" | "kept" | "closed" | "opening" = "open") =>
  seedSandbox(api.database.pool, { runId, rolloutId, state, keepMinutes: 10 });
const log = async (sandboxId: string) =>
  EventPage.parse(await (await api.fetch(`/api/v1/runs/${runId}/events`)).json()).events.flatMap(({ body }) =>
    body.type === "sandbox-shell" && body.sandboxId === sandboxId ? [`${body.action} by ${body.by}`] : [],
  );
const token = async (scope: "read" | "write") => {
  const answer: unknown = await (await api.fetch("/api/v1/tokens", jsonPost({ name: scope, scope }))).json();
  return z.object({ secret: z.string(), tokenId: z.string() }).parse(answer);
};

interface Shell {
  readonly connection: ShellConnection;
  readonly said: () => string;
  readonly bytes: () => number;
  readonly isOpen: () => boolean;
  readonly end: () => ShellEnd | null;
  type(text: string): void;
}
function openShell(sandboxId: string, more: { token?: string; runId?: string; hold?: Promise<void> } = {}): Shell {
  let said = "";
  let bytes = 0;
  let isOpen = false;
  let end: ShellEnd | null = null;
  const connection = new ShellConnection({
    url: api.url,
    token: more.token ?? api.ownerToken,
    asked: { runId: more.runId ?? runId, sandboxId, columns: 90, rows: 30 },
    onOpen: () => {
      isOpen = true;
    },
    onOutput: async (piece) => {
      bytes += piece.length;
      said = (said + Buffer.from(piece).toString()).slice(-10_000);
      await more.hold;
    },
    onEnd: (ended) => {
      end = ended;
    },
  });
  opened.push(connection);
  return {
    connection,
    said: () => said,
    bytes: () => bytes,
    isOpen: () => isOpen,
    end: () => end,
    type: (text) => connection.write(Buffer.from(text)),
  };
}
const isOpen = (shell: Shell) => until(() => expect([shell.isOpen(), shell.end()]).toEqual([true, null]));
const endsWith = (shell: Shell, reason: string | RegExp) =>
  until(() => expect(shell.end()?.reason).toEqual(reason instanceof RegExp ? expect.stringMatching(reason) : reason));

describe("a shell", () => {
  it("takes what is typed, shows what it says, tells how it ended, and the log has who was there", async () => {
    const id = await seed();
    const shell = openShell(id);
    await isOpen(shell);
    expect(local.sizes.at(-1)).toBe("90x30");
    shell.type("echo $((6 * 7)) $TERM; printf '\\377\\000'\n");
    await until(() => expect(shell.said()).toContain("42 xterm-256color"));
    shell.connection.resize(132, 43);
    await until(() => expect(local.sizes.at(-1)).toBe("132x43"));
    expect(await log(id)).toEqual(["opened by the owner"]);
    shell.type("exit 3\n");
    await until(() => expect(shell.end()).toEqual({ reason: "the shell ended with 3", exitCode: 3 }));
    await until(async () => expect(await log(id)).toEqual(["opened by the owner", "closed by the owner"]));
  });

  it("has one new size under way, however many come, and then the last of them", async () => {
    const shell = openShell(await seed());
    await isOpen(shell);
    const before = local.sizes.length;
    const letGo = local.holdSizes();
    for (let columns = 2; columns <= 1000; columns += 1) shell.connection.resize(columns, 40);
    shell.type("echo $((6 * 7))\n");
    await until(() => expect(shell.said()).toContain("42"));
    expect(local.sizes.slice(before)).toEqual(["2x40"]);
    letGo();
    await until(() => expect(local.sizes.slice(before)).toEqual(["2x40", "1000x40"]));
  });

  it("in a kept sandbox opens as in a live one, and has the size that its terminal got meanwhile", async () => {
    const shell = openShell(await seed("kept"));
    shell.connection.resize(101, 31);
    await isOpen(shell);
    await until(() => expect(local.sizes.at(-1)).toBe("101x31"));
  });

  it("takes a large paste piece by piece, whole", async () => {
    const shell = openShell(await seed());
    await isOpen(shell);
    shell.type(`wc -c <<'EOF'\n${"x".repeat(99_999)}\nEOF\n`);
    await until(() => expect(shell.said()).toContain("100000"));
  });

  it("that is left hangs up on all it started, jobs in the background too", async () => {
    const id = await seed();
    const shell = openShell(id);
    await isOpen(shell);
    shell.type("nohup sleep 1000 >/dev/null 2>&1 & (trap '' HUP; sleep 1000) & echo started\n");
    await until(() => expect(shell.said()).toContain("started"));
    shell.connection.close();
    await until(() => expect(local.running()).toBe(0));
    await until(async () => expect((await log(id)).at(-1)).toBe("closed by the owner"));
  });

  it("that is left while it is opened leaves nothing running", async () => {
    const id = await seed();
    const letGo = local.holdStarts();
    const shell = openShell(id);
    await until(() => expect(local.running()).toBe(1));
    shell.connection.close();
    await log(id);
    letGo();
    await until(async () => expect(await log(id)).toEqual(["opened by the owner", "closed by the owner"]));
    await until(() => expect(local.running()).toBe(0));
  });

  it("waits with its output for a client that does not take it, and ends all the same", async () => {
    let release = () => {};
    const hold = new Promise<void>((resolve) => {
      release = resolve;
    });
    const shell = openShell(await seed(), { hold });
    await isOpen(shell);
    shell.type("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo all of it\n");
    await until(() => expect(shell.bytes()).toBeGreaterThanOrEqual(16_384));
    // Eight pieces and no more while none is taken: meanwhile another one says a whole megabyte.
    const other = openShell(await seed());
    await isOpen(other);
    other.type("head -c 1000000 /dev/zero | tr '\\0' y; echo; echo told\n");
    await until(() => expect(other.said()).toContain("told"));
    expect(shell.bytes()).toBeLessThanOrEqual(8 * 16_384);
    release();
    await until(() => expect(shell.said()).toContain("all of it"));
    expect(shell.bytes()).toBeGreaterThan(3_000_000);
  });
});

describe("nobody opens one", () => {
  it.each(["closed", "opening"] as const)("in a sandbox that is %s", async (state) => {
    const shell = openShell(await seed(state));
    await endsWith(shell, `the sandbox is ${state}: a shell opens in one that is open or kept`);
  });

  it("under another run's name, or where there is no sandbox", async () => {
    const id = await seed();
    await endsWith(openShell(id, { runId: await seedRun(api.database.pool) }), "the sandbox is of another run");
    await endsWith(openShell(`sbx_${"0".repeat(20)}`), /no sandbox with id/);
    expect(await log(id)).toEqual([]);
  });

  it("with a token that only reads, with none, or from a foreign page", async () => {
    const id = await seed();
    const { secret } = await token("read");
    await endsWith(openShell(id, { token: secret }), "only who may change things opens shells");
    await endsWith(openShell(id, { token: "wrong" }), "only who may change things opens shells");
    const foreign = rawShellSocket(api.url, api.ownerToken, { origin: "http://elsewhere.example" });
    await new Promise<void>((resolve, reject) => {
      foreign.on("connect_error", () => resolve());
      foreign.on("connect", () => reject(new Error("a foreign page got in")));
    });
    foreign.close();
    expect(await log(id)).toEqual([]);
  });

  it("when as many are open as there may be, until one is left", async () => {
    const [a, b] = [openShell(await seed()), openShell(await seed())];
    await Promise.all([isOpen(a), isOpen(b)]);
    await endsWith(openShell(await seed()), /^2 shells are open on this server/);
    a.connection.close();
    const id = await seed();
    await until(async () => {
      const late = openShell(id);
      await until(() => expect(late.isOpen() || late.end() !== null).toBe(true));
      expect(late.isOpen()).toBe(true);
    });
  });

  it("that the sandbox's own runtime does not know any more", async () => {
    const id = await seed();
    local.lose(id);
    await endsWith(openShell(id), "the sandbox is not there any more");
    expect(await log(id)).toEqual([]);
  });
});

describe("a shell ends, and says why", () => {
  it("when its sandbox is closed", async () => {
    const id = await seed();
    const shell = openShell(id);
    await isOpen(shell);
    await api.database.pool.query("update sandboxes set state = 'closed' where id = $1", [id]);
    await endsWith(shell, "the sandbox is closed");
    await until(async () => expect((await log(id)).at(-1)).toBe("closed by the owner"));
  });

  it("when whether it may go on can't be checked", async () => {
    const shell = openShell(await seed());
    await isOpen(shell);
    const { pool } = api.database;
    await pool.query("alter table sandboxes rename to sandboxes_elsewhere");
    try {
      await endsWith(shell, /could not be checked/);
    } finally {
      await pool.query("alter table sandboxes_elsewhere rename to sandboxes");
    }
  });

  it("when its token is revoked", async () => {
    const id = await seed();
    const { secret, tokenId } = await token("write");
    const shell = openShell(id, { token: secret });
    await isOpen(shell);
    await api.fetch(`/api/v1/tokens/${tokenId}`, { method: "DELETE" });
    await endsWith(shell, "you are signed in no more");
    await until(async () =>
      expect(await log(id)).toEqual([`opened by write (token:${tokenId})`, `closed by write (token:${tokenId})`]),
    );
  });

  it("when a client does not speak the protocol", async () => {
    const id = await seed();
    const socket = rawShellSocket(api.url, api.ownerToken);
    const ended = new Promise<unknown>((resolve) => socket.on("shell-ended", resolve));
    const answers: unknown[] = [];
    for (const bad of [null, {}, { runId, sandboxId: id, columns: 0, rows: 1 }, "x"])
      answers.push(await socket.emitWithAck("shell-open", bad));
    expect(answers).toEqual(Array(4).fill(expect.objectContaining({ ok: false })));
    socket.emit("shell-open");
    expect(await socket.emitWithAck("shell-open", { runId, sandboxId: id, columns: 80, rows: 24 })).toEqual({
      ok: true,
    });
    expect(await socket.emitWithAck("shell-open", { runId, sandboxId: id, columns: 80, rows: 24 })).toMatchObject({
      ok: false,
    });
    socket.emit("shell-resize", { columns: "wide" });
    socket.emit("shell-input", "text, no bytes");
    expect(await ended).toMatchObject({ reason: expect.stringContaining("input comes as bytes") });
    socket.close();
  });

  it("when nobody types", async () => {
    const server = await startTestApi({}, createLog("silent"), {
      runtime: async () => local.runtime,
      shellLimits: { idleMs: 60 },
    });
    try {
      const { pool } = server.database;
      const run = await seedRun(pool);
      const { rolloutIds } = await seedStep(pool, run, { step: 1, rollouts: [{ reward: null, ending: null }] });
      const id = await seedSandbox(pool, { runId: run, rolloutId: rolloutIds[0] ?? "" });
      const end = await new Promise<ShellEnd>((onEnd) => {
        const asked = { runId: run, sandboxId: id, columns: 80, rows: 24 };
        const ignore = () => undefined;
        new ShellConnection({
          url: server.url,
          token: server.ownerToken,
          asked,
          onOpen: ignore,
          onOutput: ignore,
          onEnd,
        });
      });
      expect(end.reason).toBe("no key came for 0 min");
    } finally {
      await server.close();
    }
  });

  it("when the server stops, which waits until it is left", async () => {
    const server = await startTestApi({}, createLog("silent"), { runtime: async () => local.runtime });
    const { pool } = server.database;
    const run = await seedRun(pool);
    const { rolloutIds } = await seedStep(pool, run, { step: 1, rollouts: [{ reward: null, ending: null }] });
    const id = await seedSandbox(pool, { runId: run, rolloutId: rolloutIds[0] ?? "" });
    let end: ShellEnd | null = null;
    await new Promise<void>((onOpen) => {
      const asked = { runId: run, sandboxId: id, columns: 80, rows: 24 };
      const onEnd = (ended: ShellEnd) => {
        end = ended;
      };
      new ShellConnection({
        url: server.url,
        token: server.ownerToken,
        asked,
        onOpen,
        onOutput: () => undefined,
        onEnd,
      });
    });
    await server.restart();
    await until(() => expect(end?.reason).toBe("the server stops"));
    const { rows } = await pool.query(
      "select body ->> 'action' as action from events where type = 'sandbox-shell' order by seq",
    );
    expect(rows.map(({ action }) => action)).toEqual(["opened", "closed"]);
    await server.close();
  });
});

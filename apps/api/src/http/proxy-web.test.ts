import { createServer, type IncomingMessage, type Server } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../testing/start-api.ts";

/** A page server that says what reached it. */
let pages: Server;
let seen: IncomingMessage[] = [];
let api: TestApi;

const listen = (server: Server, port = 0): Promise<number> =>
  new Promise((resolve) => {
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });

beforeAll(async () => {
  pages = createServer((request, response) => {
    seen.push(request);
    if (request.url === "/slow") {
      response.write("first");
      setTimeout(() => response.end("second"), 50);
      return;
    }
    if (request.url === "/broken") {
      response.writeHead(200, { "content-length": "100" });
      response.write("part");
      setTimeout(() => response.destroy(), 20);
      return;
    }
    if (request.method === "POST") {
      response.setHeader("set-cookie", ["a=1", "b=2"]);
      request.pipe(response);
      return;
    }
    response.writeHead(201, {
      "content-type": "text/plain",
      "x-page": "yes",
      connection: "keep-alive, x-hop",
      "x-hop": "1",
    });
    response.end(`page ${request.url}`);
  });
  pages.on("upgrade", (request, socket, head) => {
    seen.push(request);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    if (head.length > 0) socket.write(head);
    socket.pipe(socket);
  });
  const port = await listen(pages);
  api = await startTestApi({ webUrl: new URL(`http://127.0.0.1:${port}`) });
});
afterAll(async () => {
  await api.close();
  pages.closeAllConnections();
  pages.close();
});

describe("passing pages on", () => {
  it("keeps address, status and headers, and not what belongs to the connection or is secret", async () => {
    seen = [];
    const response = await api.fetch("/runs/x?tab=a%20b", { headers: { "x-mine": "1" } });
    expect(response.status).toBe(201);
    expect(await response.text()).toBe("page /runs/x?tab=a%20b");
    expect(response.headers.get("x-page")).toBe("yes");
    expect(response.headers.get("x-hop")).toBeNull();
    expect(seen[0]?.headers).toMatchObject({
      host: `127.0.0.1:${api.port}`,
      "x-mine": "1",
      "x-forwarded-host": `127.0.0.1:${api.port}`,
    });
    expect(seen[0]?.headers.authorization).toBeUndefined();
  });

  it("streams both ways", async () => {
    const body = Buffer.alloc(5 * 1024 * 1024, 0x61);
    const posted = await api.fetch("/upload", { method: "POST", body });
    expect((await posted.arrayBuffer()).byteLength).toBe(body.length);
    expect(posted.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    const slow = await api.fetch("/slow");
    const reader = slow.body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first");
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("second");
  });

  it("ends what breaks off in the middle, and goes on", async () => {
    await expect(api.fetch("/broken").then((response) => response.text())).rejects.toThrow();
    expect((await api.fetch("/fine")).status).toBe(201);
  });

  it("passes upgrades on, bytes intact", async () => {
    const socket = connect(api.port, "127.0.0.1");
    socket.write(
      `GET /_next/webpack-hmr HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer ${api.ownerToken}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhead`,
    );
    let received = "";
    await new Promise<void>((resolve) => {
      socket.on("data", (data) => {
        received += String(data);
        if (received.includes("headping")) resolve();
        else if (received.endsWith("head")) socket.write("ping");
      });
    });
    expect(received).toMatch(/^HTTP\/1.1 101 /);
    socket.destroy();
  });
});

describe("before the pages are up", () => {
  it("shows a page that comes again by itself, and a 503 to programs", async () => {
    const closed = createServer();
    const port = await listen(closed);
    await new Promise((resolve) => closed.close(resolve));
    const starting = await startTestApi({ webUrl: new URL(`http://127.0.0.1:${port}`) });
    try {
      const page = await starting.fetch("/runs", { headers: { accept: "text/html,*/*" } });
      expect(page.status).toBe(503);
      expect(page.headers.get("content-type")).toContain("text/html");
      expect(await page.text()).toContain('http-equiv="refresh"');
      const asset = await starting.fetch("/_next/x.js");
      expect(asset.status).toBe(503);
      expect(asset.headers.get("content-type")).toContain("problem+json");
      expect((await starting.fetch("/api/v1/runs")).status).toBe(200);
    } finally {
      await starting.close();
    }
  });
});

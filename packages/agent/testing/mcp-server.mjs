/**
 * An MCP server for tests: `stdio`, or `http` (prints its port). Its tools are what a server may do well and badly. With TEST_KEY
 * set it serves over HTTP only those who send it.
 */
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const text = (value) => ({ content: [{ type: "text", text: value }] });

function makeServer() {
  const server = new McpServer({ name: "test", version: "1" });
  let count = 0;
  const tool = (name, inputSchema, call) =>
    server.registerTool(name, { description: `Does ${name}.`, inputSchema }, call);
  tool("echo", { text: z.string() }, ({ text: said }) => text(said));
  tool("add", { a: z.number(), b: z.number() }, ({ a, b }) => text(String(a + b)));
  tool("count", {}, () => text(String(++count)));
  tool("crash", {}, () => process.exit(1));
  tool("hang", {}, () => new Promise(() => undefined));
  // Deaf: it blocks the whole process, so that not even a ping is answered.
  tool("freeze", {}, () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  tool("big", { bytes: z.number() }, ({ bytes }) => text("x".repeat(bytes)));
  tool("fail", {}, () => ({ ...text("the disk is full"), isError: true }));
  tool("throw", {}, () => {
    throw new Error("a bug");
  });
  tool("variable", { name: z.string() }, ({ name }) => text(process.env[name] ?? "(unset)"));
  tool("mixed", {}, () => ({
    content: [
      { type: "text", text: "seen:" },
      { type: "image", mimeType: "image/png", data: Buffer.from("picture").toString("base64") },
      { type: "resource", resource: { uri: "file:///a.txt", text: "inside" } },
      { type: "resource", resource: { uri: "file:///a.bin", mimeType: "x/y", blob: "AAAA" } },
      { type: "resource_link", uri: "file:///b.txt", name: "b" },
    ],
  }));
  tool("dotted.name", {}, () => text("ok"));
  return server;
}

async function serveHttp() {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    const key = process.env.TEST_KEY;
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}`) return response.writeHead(401).end();
    // A server that has lost its memory, as after a restart.
    if (request.url === "/forget") {
      sessions.clear();
      return response.end();
    }
    if (request.url === "/sessions") return response.end(String(sessions.size));
    const id = request.headers["mcp-session-id"];
    if (typeof id === "string" && !sessions.has(id)) return response.writeHead(404).end();
    let transport = sessions.get(id);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessionclosed: (session) => void sessions.delete(session),
        onsessioninitialized: (session) => void sessions.set(session, transport),
      });
      await makeServer().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => console.log(http.address().port));
}

if (process.argv[2] === "http") await serveHttp();
else {
  console.error("ready, and TEST_SECRET is not told");
  await makeServer().connect(new StdioServerTransport());
}

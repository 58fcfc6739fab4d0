import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readBody } from "./read-body.ts";

let arrived: (request: IncomingMessage) => void = () => undefined;
const server = createServer((request) => arrived(request));
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** A request whose client has left. */
async function leftAlone(head: string): Promise<IncomingMessage> {
  const request = new Promise<IncomingMessage>((resolve) => {
    arrived = resolve;
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("not listening");
  const socket = connect(address.port, "127.0.0.1");
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${head}`);
  const found = await request;
  const closed = new Promise((resolve) => found.once("close", resolve));
  socket.destroy();
  await closed;
  return found;
}

it.each([
  ["before its body came", "Content-Length: 5\r\n\r\n"],
  ["after all of it came", "Content-Length: 5\r\n\r\nhello"],
])("gives up a request whose client was gone before it was read, %s", async (_, head) => {
  await expect(readBody(await leftAlone(head))).rejects.toThrow("ended before its body did");
});

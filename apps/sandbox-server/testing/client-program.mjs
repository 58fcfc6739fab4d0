/**
 * A client that knows only what the documentation of the protocol says: opens a sandbox, runs a command that does not end, and waits
 * to be killed. Arguments: URL of the gateway's client socket, token, the client's name, spec and command as JSON.
 */
import { WebSocket } from "ws";

const [url, token, deployment, spec, command] = process.argv.slice(2);
const socket = new WebSocket(url, ["rolldeck-sandbox.1"], { headers: { authorization: `Bearer ${token}` } });

const send = (header) => {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  socket.send(Buffer.concat([length, json]));
};

socket.on("open", () => send({ k: "client-hello", version: 1, deployment }));
socket.on("message", (message) => {
  const header = JSON.parse(message.subarray(4, 4 + message.readUInt32BE(0)).toString());
  console.log(JSON.stringify(header));
  const { id } = JSON.parse(spec);
  if (header.k === "welcome") send({ k: "open", s: 1, method: "open", params: { spec: JSON.parse(spec) } });
  if (header.k === "result" && header.s === 1) {
    const params = { sandbox: id, command: JSON.parse(command), stdin: false, timeoutMs: 600_000 };
    send({ k: "open", s: 2, method: "exec", params });
    console.log("running");
  }
});

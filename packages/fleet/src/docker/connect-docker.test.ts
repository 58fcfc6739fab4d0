import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectDocker } from "./connect-docker.ts";

let certFolder: string;
beforeAll(() => {
  certFolder = mkdtempSync(path.join(tmpdir(), "rolldeck-certs-"));
  const [key, cert] = ["key.pem", "cert.pem"].map((name) => path.join(certFolder, name));
  execFileSync(
    "openssl",
    [
      ...[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-subj",
        "/CN=here",
        "-days",
        "1",
      ],
      ...["-keyout", key ?? "", "-out", cert ?? ""],
    ],
    { stdio: "pipe" },
  );
  copyFileSync(cert ?? "", path.join(certFolder, "ca.pem"));
});
afterAll(() => rmSync(certFolder, { recursive: true }));

/** First byte of what a client says to a port of that address: 22 begins a TLS handshake. */
async function firstByte(host: string): Promise<number | undefined> {
  let said: number | undefined;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (bytes) => {
      said = bytes[0];
      socket.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, host, resolve));
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : 0;
  await expect(connectDocker({ kind: "tcp", host, port, certFolder }).ping()).rejects.toThrow();
  await new Promise((resolve) => server.close(resolve));
  return said;
}

// A client that reads the last as a URL takes its first part for a scheme.
test.each(["127.0.0.1", "::1", "0:0:0:0:0:0:0:1"])(
  "a daemon at %s is reached, and nothing is said to it without TLS",
  async (host) => {
    expect(await firstByte(host)).toBe(22);
  },
);

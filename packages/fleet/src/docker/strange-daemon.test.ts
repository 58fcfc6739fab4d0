import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LaunchFailure } from "../launch-failure.ts";
import { DockerLauncher } from "./docker-launcher.ts";

/** Something that listens where a daemon should, and answers JSON that no daemon does. */
let server: Server;
let folder: string;
let answer: unknown;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "rolldeck-strange-"));
  server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(path.join(folder, "docker.sock"), resolve));
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const launcher = () =>
  new DockerLauncher({
    ...{ name: "odd", fleet: "f", image: "i" },
    endpoint: { kind: "socket", path: path.join(folder, "docker.sock") },
  });
const reasonOf = async (asking: Promise<unknown>) => {
  const error = await asking.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(LaunchFailure);
  return error instanceof LaunchFailure ? error.reason : null;
};

test.each([
  ["its workers", { message: "moved" }, () => launcher().seen(AbortSignal.timeout(5_000)), "all of it"],
  ["a worker", [{ Id: "c1", State: 7 }], () => launcher().seen(AbortSignal.timeout(5_000)), "0.State"],
  ["what it is", { NCPU: "many" }, () => launcher().facts(AbortSignal.timeout(5_000)), "NCPU"],
])("a strange answer about %s is the trouble of that host alone", async (_of, body, asking, field) => {
  answer = body;
  expect(await reasonOf(asking())).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`(${field})`),
    remedy: expect.stringContaining("endpoint"),
  });
});

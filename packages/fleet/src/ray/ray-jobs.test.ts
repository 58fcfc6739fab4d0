/** What the client makes of answers that no Ray gives, or only a sick one. A real Ray: e2e/ray. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { InputError } from "@rolldeck/contracts/errors";
import { afterEach, describe, expect, test } from "vitest";
import { RayFailure } from "./ray-failure.ts";
import { connectRayJobs, type RayJobs } from "./ray-jobs.ts";

let server: Server | null = null;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === null ? resolve(null) : server.close(resolve)));
  server = null;
});

async function against(listener: RequestListener, token?: string): Promise<RayJobs> {
  const started = createServer(listener);
  server = started;
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  return connectRayJobs({ url: `http://127.0.0.1:${(started.address() as AddressInfo).port}/`, token });
}
const saying =
  (status: number, body: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(status).end(body);
async function failureOf(work: Promise<unknown>): Promise<RayFailure> {
  const error = await work.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof RayFailure)) throw error;
  return error;
}

describe("what is asked", () => {
  test("carries the token, a spec in Ray's words, and nothing that a browser would send", async () => {
    const heard: { headers: object; body: unknown }[] = [];
    const ray = await against((request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        heard.push({ headers: request.headers, body: JSON.parse(Buffer.concat(pieces).toString()) });
        response.end('{"job_id":"j","submission_id":"j"}');
      });
    }, "t0ken");
    const entrypointResources = { cpus: 1, gpus: 2, memoryMb: 3, named: { rack: 0.5 } };
    const runtimeEnv = { env_vars: { A: "b" } };
    await ray.submit({ submissionId: "j", entrypoint: "true", runtimeEnv, metadata: { c: "d" }, entrypointResources });
    expect(heard[0]?.headers).toMatchObject({ authorization: "Bearer t0ken", "content-type": "application/json" });
    expect(Object.keys(heard[0]?.headers ?? {}).filter((name) => /^sec-|user-agent|origin/.test(name))).toEqual([]);
    expect(heard[0]?.body).toEqual({
      ...{ entrypoint: "true", submission_id: "j", runtime_env: runtimeEnv, metadata: { c: "d" } },
      ...{ entrypoint_num_cpus: 1, entrypoint_num_gpus: 2, entrypoint_memory: 3 * 1024 ** 2 },
      entrypoint_resources: { rack: 0.5 },
    });
  });

  test.each([
    ["another protocol", { url: "ftp://10.0.0.1" }, "url"],
    ["a password in the address", { url: "http://me:secret@10.0.0.1:8265" }, "url"],
    ["a token of two lines", { url: "http://10.0.0.1:8265", token: "a\r\nb" }, "token"],
  ])("%s is refused by the field's name, and not repeated", (_, cluster, path) => {
    const error = (() => {
      try {
        return connectRayJobs(cluster);
      } catch (caught) {
        return caught;
      }
    })();
    expect(error).toBeInstanceOf(InputError);
    expect(error).toMatchObject({ issues: [{ path }] });
    expect(String(error)).not.toContain("secret");
  });

  test("an id that could lead elsewhere is refused when a job is submitted, and stays one part of a path otherwise", async () => {
    const heard: string[] = [];
    const ray = await against((request, response) => {
      heard.push(request.url ?? "");
      response.writeHead(404).end("Job x does not exist");
    });
    await expect(ray.submit({ submissionId: "../x", entrypoint: "true" })).rejects.toBeInstanceOf(InputError);
    await ray.remove("../../x?y");
    expect(heard).toEqual(["/api/jobs/..%2F..%2Fx%3Fy"]);
  });
});

describe("what is answered", () => {
  test.each([
    [401, "Unauthorized", "unauthorized", false],
    [503, "starting", "unavailable", true],
    [500, "No available agent to submit job, please try again later.", "unavailable", true],
    [404, "Not Found", "strange-answer", false],
    [302, "", "strange-answer", false],
    [400, "Traceback (most recent call last):\n  File x\nTypeError: entrypoint must be a string\n", "refused", false],
    [500, "Traceback (most recent call last):\nRuntimeError: disk full\n", "failed", false],
    [200, "<html>a login page</html>", "strange-answer", false],
    [200, '{"status":"DANCING"}', "strange-answer", false],
  ] as const)("%i %j is told as %s", async (status, body, code, retryable) => {
    const failure = await failureOf((await against(saying(status, body))).status("j"));
    expect(failure).toMatchObject({ code, retryable, boundary: "infrastructure" });
    expect(failure.message).toContain("looking at job j");
  });

  test("the last line of a traceback is what a person reads", async () => {
    const ray = await against(saying(400, "Traceback (most recent call last):\n  File x\nTypeError: what it was\n\n"));
    expect((await failureOf(ray.status("j"))).message).toMatch(/Ray answers 400: TypeError: what it was$/);
  });

  test("one that breaks off, or never comes, is no answer", async () => {
    const breaking = await against((_request, response) => {
      response.writeHead(200, { "content-length": "100" }).write("{");
      setImmediate(() => response.destroy());
    });
    expect(await failureOf(breaking.status("j"))).toMatchObject({ code: "unavailable", retryable: true });
    const silent = await against(() => undefined);
    const reason = new Error("the caller has gone");
    await expect(silent.status("j", AbortSignal.any([AbortSignal.abort(reason)]))).rejects.toBe(reason);
  });

  test("one without end is given up, not held", async () => {
    const ray = await against((_request, response) => {
      const more = (): void => {
        while (response.write(Buffer.alloc(1024 * 1024, " ")));
        response.once("drain", more);
      };
      more();
    });
    expect(await failureOf(ray.status("j"))).toMatchObject({ code: "strange-answer" });
  });

  test("of a log that is longer than what is kept, the end is read in whole lines, whatever it holds", async () => {
    const line = `${'x"\\n\\'.repeat(20)}é\t`;
    // Of another length each, so that the cut falls at every place within an escape.
    for (const end of ["the end", "the end.", "the end..", "the end..."]) {
      const escaped = JSON.stringify({ logs: `${`${line}\n`.repeat(30_000)}${end}` }).replaceAll("é", "\\u00e9");
      const lines = (await (await against(saying(200, escaped))).logs("j")).split("\n");
      expect(lines.pop()).toBe(end);
      expect(lines.length).toBeGreaterThan(10_000);
      expect(lines.length).toBeLessThan(30_000);
      expect(new Set(lines)).toEqual(new Set([line]));
    }
    const short = await (await against(saying(200, JSON.stringify({ logs: "é" })))).logs("j");
    expect(short).toBe("é");
  });
});

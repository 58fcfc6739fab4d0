/** The server with TLS, by a certificate of a CA that only those who are told of it trust. */
import { RemoteRuntime } from "@rolldeck/sandbox/remote/remote-runtime";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RemoteStack } from "../testing/remote-stack.ts";

const { signal } = new AbortController();
let stack: RemoteStack;
beforeAll(async () => {
  stack = await RemoteStack.make();
  await stack.startServer(await stack.makeCertificates());
});
afterAll(() => stack?.stop());

it("serves those who trust its CA", async () => {
  expect(stack.url).toMatch(/^https:/);
  expect((await stack.client().status(signal)).hosts).toEqual([]);
});

it("is not talked to by those who don't", async () => {
  const trusting = new RemoteRuntime({
    address: async () => ({ url: stack.url, token: await stack.token("client"), ca: null }),
    ...{ deployment: "test", onTrouble: () => undefined },
  });
  expect(await trusting.ailment(AbortSignal.timeout(30_000))).toMatch(/certificate|issuer/);
  await trusting.disconnect();
});

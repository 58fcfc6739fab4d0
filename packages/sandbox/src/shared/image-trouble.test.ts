import { isLastingSandboxFailure } from "@rolldeck/contracts/ports/sandbox";
import { expect, test } from "vitest";
import { imageTrouble } from "./image-trouble.ts";

const remedy = "correct its name";

test("it names the image, what was said of it and what to do", () => {
  expect(imageTrouble("org/image:1", " manifest unknown\n", remedy).message).toBe(
    "image org/image:1 can't be had: manifest unknown; correct its name",
  );
});

test.each([
  ["manifest for org/image:1 not found: manifest unknown", true],
  ["pull access denied for org/image, repository does not exist or may require 'docker login'", true],
  ["dial tcp: lookup rolldeck.invalid: no such host", true],
  ["toomanyrequests: You have reached your pull rate limit", false],
  ["net/http: TLS handshake timeout", false],
  ["received unexpected HTTP status: 503 Service Unavailable", false],
  ["read tcp 10.0.0.1:443: connection reset by peer", false],
])("asking again for an image is useless where the registry says so, and not where it is busy: %s", (said, lasting) => {
  expect(isLastingSandboxFailure(imageTrouble("org/image:1", said, remedy))).toBe(lasting);
});

import { InputError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { parseComposeFile } from "./compose-file.ts";

const parse = (text: string) => parseComposeFile(text, "c.yaml", { KEY: "value" });
const refusal = (text: string): string => {
  try {
    parse(text);
  } catch (cause) {
    if (cause instanceof InputError) return cause.issues.map(({ message }) => message).join("\n");
    throw cause;
  }
  return "";
};
const service = (text: string): string => `services:\n  db:\n    image: x\n    ${text}\n`;

describe("a compose file", () => {
  test("gives the agent's service and the others, those that are waited for first", () => {
    const { file, warnings } = parse(`
services:
  web: { image: w, depends_on: [db], restart: always }
  main: { build: ., depends_on: { web: { condition: service_healthy } }, environment: [A=1, "B=\${KEY}"] }
  db:
    build: { context: ./db, dockerfile: Other }
    command: redis-server --save ""
    environment: { PORT: 1, ON: true }
    healthcheck: { test: [CMD, ping], interval: 1m30s, timeout: 500ms, retries: 5, start_period: 2s }
    deploy: { resources: { limits: { cpus: "0.5", memory: 256M } } }
`);
    expect(file.services.map(({ name }) => name)).toEqual(["db", "web"]);
    expect(file.main).toMatchObject({
      build: { context: ".", dockerfile: "Dockerfile" },
      environment: { A: "1", B: "value" },
    });
    expect(file.services[0]).toEqual({
      name: "db",
      image: null,
      build: { context: "./db", dockerfile: "Other" },
      command: ["redis-server", "--save", ""],
      environment: { PORT: "1", ON: "true" },
      healthcheck: { command: ["ping"], intervalMs: 90_000, timeoutMs: 500, startMs: 2000, retries: 5 },
      cpus: 0.5,
      memoryMb: 256,
    });
    expect(warnings).toEqual(["c.yaml: services.web.restart has no effect"]);
  });

  test.each([
    ["volumes: [/etc:/etc]", /services\.db\.volumes: folders of the host/],
    ['ports: ["80:80"]', /services\.db\.ports: nothing of a sandbox is published/],
    ["privileged: true", /services\.db\.privileged: a privileged container is no sandbox/],
    ["network_mode: host", /services\.db\.network_mode/],
    ["cap_add: [SYS_ADMIN]", /services\.db\.cap_add/],
    ["devices: [/dev/kvm]", /services\.db\.devices/],
    ["env_file: .env", /services\.db\.env_file/],
    ["pid: host", /services\.db\.pid/],
    ["entrypoint: x", /services\.db\.entrypoint/],
    ["novel: x", /services\.db\.novel: is not known/],
    ["build: { context: ., args: { A: 1 } }", /services\.db\.build: args and target/],
    ["environment: [SECRET]", /services\.db\.environment\.SECRET: reads SECRET/],
    ["depends_on: [gone]", /there is no service gone/],
    ["depends_on: [db]", /wait for each other/],
    ["depends_on: { db: { condition: service_completed_successfully } }", /is not waited for here/],
    ["healthcheck: { test: ping, interval: soon }", /is no duration/],
    ["mem_limit: much", /is no size/],
  ])("%j is refused with the reason", (text, message) => {
    expect(refusal(service(text))).toMatch(message);
  });

  test("what is off is nothing to refuse; Harbor's own log mounts are ours already", () => {
    expect(refusal(service("privileged: false"))).toBe("");
    expect(refusal(service(`volumes: ["\${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}"]`))).toBe("");
  });

  test("volumes and networks of the file, and what is no YAML, are refused", () => {
    expect(refusal("services: {}\nvolumes: { a: {} }")).toMatch(/c\.yaml: volumes/);
    expect(refusal("services: {}\nnetworks: { a: {} }")).toMatch(/c\.yaml: networks/);
    expect(refusal("services: [")).toMatch(/c\.yaml: is no YAML/);
    expect(refusal("")).toMatch(/c\.yaml: /);
    expect(refusal("services: { Bad_: { image: x } }")).toMatch(/is no name of a host/);
  });

  test("whatever it holds is read or refused by name", () => {
    const keys = fc.constantFrom(
      "image",
      "build",
      "command",
      "environment",
      "healthcheck",
      "depends_on",
      "volumes",
      "mem_limit",
    );
    const text = fc.oneof(
      fc.string(),
      fc.dictionary(keys, fc.jsonValue()).map((table) => stringify({ services: { db: table } })),
    );
    fc.assert(
      fc.property(text, (each) => {
        const told = refusal(each);
        if (told !== "") expect(told).toMatch(/^c\.yaml: /);
      }),
      { numRuns: 300 },
    );
  });
});

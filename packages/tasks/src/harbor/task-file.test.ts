import { InputError } from "@rolldeck/contracts/errors";
import fc from "fast-check";
import { stringify } from "smol-toml";
import { describe, expect, test } from "vitest";
import { narrow } from "./network.ts";
import { megabytes, parseTaskFile } from "./task-file.ts";

const parse = (text: string) => parseTaskFile(text, "a/task.toml");
const refusal = (text: string): string[] => {
  try {
    parse(text);
  } catch (cause) {
    if (cause instanceof InputError) return cause.issues.map(({ message }) => message);
    throw cause;
  }
  return [];
};

describe("task.toml", () => {
  test("schema 1.4 leaves unset what it does not say", () => {
    const { file, warnings } = parse('schema_version = "1.4"\n[environment]\ndocker_image = "x"\n');
    expect(warnings).toEqual([]);
    expect(file).toMatchObject({
      multiStep: false,
      environment: { cpus: null, memoryMb: null, diskMb: null, network: { mode: "public" }, buildTimeoutMs: 600_000 },
      steps: [{ name: null, agentTimeoutMs: null, verifier: { separate: false, timeoutMs: 600_000 } }],
    });
  });

  test.each(["1.0", "1.1"])("schema %s has the defaults of its time, and the old keys", (version) => {
    const text = `version = "${version}"\n[environment]\nmemory = "1.5G"\nallow_internet = false\n`;
    expect(parse(text).file.environment).toMatchObject({
      cpus: 1,
      memoryMb: 1536,
      diskMb: 10_240,
      network: { mode: "none" },
    });
  });

  test("network_mode wins over allow_internet; an allowlist of nothing is no network", () => {
    const mode = (text: string) => parse(`[environment]\n${text}`).file.environment.network;
    expect(mode('network_mode = "public"\nallow_internet = false')).toEqual({ mode: "public" });
    expect(mode('network_mode = "allowlist"')).toEqual({ mode: "none" });
    expect(mode('network_mode = "allowlist"\nallowed_hosts = ["PyPI.org", "*.debian.org"]')).toEqual({
      mode: "allow-list",
      hosts: ["pypi.org", "*.debian.org"],
    });
  });

  test("unknown keys are told by path and have no effect; metadata is free", () => {
    const { warnings } = parse(
      'colour = 1\n[metadata]\nany = { thing = 1 }\n[environment]\nmood = "x"\n[[steps]]\nname = "a"\n[steps.agent]\nhat = true\n[[verifier.collect]]\ncommand = "x"\nloud = 1\n',
    );
    expect(warnings).toEqual(
      ["colour", "environment.mood", "steps.0.agent.hat", "verifier.collect.0.loud"].map(
        (key) => `a/task.toml: ${key} is not known and has no effect`,
      ),
    );
    expect(parse('schema_version = "1.7"').warnings[0]).toMatch(/newer than 1\.4/);
  });

  test.each([
    ["[agent]\ntimeout_sec = -1", /a\/task\.toml: agent\.timeout_sec: /],
    ["[environment]\nworkdir = 'app'", /environment\.workdir: must be an absolute path/],
    ["[environment]\ngpus = 1", /environment\.gpus: sandboxes have no GPU/],
    ["[environment]\nos = 'Windows'", /environment\.os: sandboxes run linux/],
    ["[environment]\nmemory = '1G'\nmemory_mb = 512", /environment\.memory: says other than memory_mb/],
    ["[environment]\nmemory = 'lots'", /environment\.memory: is no size/],
    ["artifacts = ['/tests/x']", /artifacts: \/tests\/x would come over the verifier's own files/],
    ["artifacts = ['/']", /would come over/],
    ["artifacts = ['/app/../etc']", /holds \.\./],
    ["artifacts = [{ source = '/x', service = 'db' }]", /taken from main alone/],
    ["[[verifier.collect]]\ncommand = 'x'\nservice = 'db'", /run in main alone/],
    [
      "[verifier]\nenvironment_mode = 'shared'\n[verifier.environment]\ncpus = 1",
      /there is none with environment_mode "shared"/,
    ],
    ["[[steps]]\nname = 'a'\n[[steps]]\nname = 'a'", /steps: two have one name/],
    ["[[steps]]\nname = '../a'", /steps\.0\.name: is no name of a folder/],
    ["[[steps]]\nname = 'a'\nagent = { user = 'x' }\n[[steps]]\nname = 'b'", /steps\.agent\.user/],
    [
      "[verifier]\nenvironment_mode = 'separate'\n[[steps]]\nname = 'a'\nmin_reward = 1\n[[steps]]\nname = 'b'",
      /steps\.a: min_reward is not known in time/,
    ],
    ["[verifier.env]\n'a b' = 'x'", /verifier\.env/],
    ["x = ", /a\/task\.toml: is no TOML/],
    ["__proto__ = 1", /is no TOML/],
  ])("%j is refused by its key", (text, message) => {
    expect(refusal(text).join("\n")).toMatch(message);
  });

  test("a step says its own, and the task's where it says nothing", () => {
    const { steps } = parse(`
artifacts = ["/app/a"]
[agent]
timeout_sec = 10
[verifier]
timeout_sec = 20
env = { A = "1", B = "2" }
[[steps]]
name = "one"
min_reward = { speed = 0.5 }
artifacts = ["/app/b"]
[steps.verifier]
env = { B = "3" }
[[steps]]
name = "two"
min_reward = 1
[steps.agent]
timeout_sec = 5
`).file;
    expect(steps).toMatchObject([
      {
        name: "one",
        agentTimeoutMs: 10_000,
        minReward: { speed: 0.5 },
        artifacts: [{ source: "/app/a" }, { source: "/app/b" }],
        verifier: { timeoutMs: 20_000, variables: { A: "1", B: "3" } },
      },
      { name: "two", agentTimeoutMs: 5000, minReward: { reward: 1 }, verifier: { variables: { A: "1", B: "2" } } },
    ]);
  });

  test("a verifier of its own: by its table, or by the mode alone", () => {
    const separate = (text: string) => parse(text).file.steps[0]?.verifier;
    expect(separate("[verifier.environment]\ndocker_image = 'v'")).toMatchObject({
      separate: true,
      environment: { dockerImage: "v" },
    });
    expect(separate("[verifier]\nenvironment_mode = 'separate'")).toMatchObject({ separate: true, environment: null });
  });

  test("whatever a file holds is a task or a refusal that names the file", () => {
    const text = fc.oneof(
      fc.string(),
      fc
        .dictionary(
          fc.constantFrom("agent", "verifier", "environment", "steps", "artifacts", "task", "x"),
          fc.jsonValue(),
        )
        .map((value) => {
          try {
            return stringify(value);
          } catch {
            return "";
          }
        }),
    );
    fc.assert(
      fc.property(text, (each) => {
        for (const message of refusal(each)) expect(message).toMatch(/^a\/task\.toml: /);
      }),
      { numRuns: 300 },
    );
  });
});

test("sizes", () => {
  expect(["2G", "512M", "0.5g", "1024K", "2GiB", "3GB"].map(megabytes)).toEqual([2048, 512, 512, 1, 2048, 3072]);
  expect(["2", "G", "2T", "-1G", "1e3M", ""].map(megabytes)).toEqual([null, null, null, null, null, null]);
});

test("an operator's network only narrows", () => {
  const hosts = (...names: string[]) => ({ mode: "allow-list", hosts: names }) as const;
  expect(narrow({ mode: "none" }, { mode: "public" })).toEqual({ mode: "none" });
  expect(narrow({ mode: "public" }, { mode: "none" })).toEqual({ mode: "none" });
  expect(narrow({ mode: "public" }, hosts("a.org"))).toEqual(hosts("a.org"));
  expect(narrow(hosts("a.org", "b.org"), hosts("b.org", "c.org"))).toEqual(hosts("b.org"));
  expect(narrow(hosts("*.a.org"), hosts("x.a.org", "a.org"))).toEqual(hosts("x.a.org"));
  expect(narrow(hosts("x.a.org"), hosts("*.a.org"))).toEqual(hosts("x.a.org"));
  expect(narrow(hosts("a.org"), hosts("b.org"))).toEqual({ mode: "none" });
});

import { describe, expect, it } from "vitest";
import { readSettings } from "./env.ts";
import { errorFacts } from "./log.ts";
import { toProblem } from "./problems.ts";

describe("what is said of an error", () => {
  const error = new Error("connect to postgres://u:pw-canary@db:5432/x failed", {
    cause: new Error("http://a:pw-canary@b said sk-1"),
  });
  it("keeps its cause for the log, without the password of an address", () => {
    const text = JSON.stringify(errorFacts(error));
    expect(text).toContain("cause");
    expect(text).not.toContain("pw-canary");
  });
  it("is nothing to the caller but where to look", () => {
    const problem = toProblem(error, "request-1");
    expect(problem).toMatchObject({ status: 500, requestId: "request-1" });
    expect(JSON.stringify(problem)).not.toContain("postgres");
  });
});

describe("settings", () => {
  const base = { ROLLDECK_DATABASE_URL: "postgres://u:pw-canary@127.0.0.1:1/x", ROLLDECK_DATA_DIR: "data" };
  it("are loopback by default, and nothing counts as absent", () => {
    const settings = readSettings({
      ...base,
      ROLLDECK_REDIS_URL: "",
      ROLLDECK_WEB_URL: "",
      DATABASE_URL: "postgres://other",
    });
    expect(settings).toMatchObject({ host: "127.0.0.1", port: 3000, webUrl: null, redisUrl: undefined });
    expect(settings.databaseUrl).toBe(base.ROLLDECK_DATABASE_URL);
    expect(settings.modelRoots[0]).toMatch(/infra\/models$/);
  });
  it("name the variable that is wrong, never its value", () => {
    const wrong = () =>
      readSettings({ ...base, ROLLDECK_DATABASE_URL: "mysql://u:pw-canary@x", ROLLDECK_PORT: "99999" });
    expect(wrong).toThrow(/ROLLDECK_DATABASE_URL/);
    expect(wrong).toThrow(/ROLLDECK_PORT/);
    expect(wrong).not.toThrow(/pw-canary/);
  });
});

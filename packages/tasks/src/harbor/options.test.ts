// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the texts are those of task files
import { tools } from "@rolldeck/tools/registry";
import { describe, expect, test } from "vitest";
import { fillIn, missingVariables, operatorVariables } from "./operator-variables.ts";
import { HarborOptions, networkOf, toolsOf } from "./options.ts";

describe("options", () => {
  test("every choice of tools is one that there is", () => {
    for (const profile of ["bash", "bash+editor", "bash+editor+search"] as const) {
      for (const agent of ["react", "codeact"] as const) {
        for (const answer of [true, false]) {
          const names = toolsOf({ tools: profile, agent, answer });
          expect(names.filter((name) => !Object.hasOwn(tools, name))).toEqual([]);
          expect(new Set(names).size).toBe(names.length);
        }
      }
    }
    expect(toolsOf(HarborOptions.parse({}))).toEqual(["bash", "str_replace_editor", "submit"]);
    expect(toolsOf(HarborOptions.parse({ agent: "codeact", tools: "bash" }))).toEqual(["execute_bash", "finish"]);
  });
  test("a network: the task's, none, or hosts", () => {
    expect(networkOf(HarborOptions.parse({}))).toEqual({ mode: "public" });
    expect(networkOf(HarborOptions.parse({ network: "none" }))).toEqual({ mode: "none" });
    expect(networkOf(HarborOptions.parse({ network: ["PyPI.org"] }))).toEqual({
      mode: "allow-list",
      hosts: ["pypi.org"],
    });
  });
});

describe("variables of the operator", () => {
  const host = { KEY: "canary", OTHER: "secret", EMPTY: "", ROLLDECK_DATABASE_URL: "postgres://x" };

  test("tasks read what is listed and nothing else, the server's own settings never", () => {
    expect(operatorVariables(undefined, host)).toEqual({});
    expect(operatorVariables("KEY, GONE ROLLDECK_DATABASE_URL", host)).toEqual({ KEY: "canary" });
    expect(missingVariables("${KEY} ${OTHER} ${ROLLDECK_DATABASE_URL:-x}", { KEY: "canary" })).toEqual(["OTHER"]);
  });
  test.each([
    ["${KEY}", "canary"],
    ["a-${KEY}-${NONE:-b}", "a-canary-b"],
    ["${EMPTY:-b}${EMPTY-c}", "b"],
    ["$$HOME $HOME ${a b}", "$HOME $HOME ${a b}"],
    ["${NONE:-}", ""],
    ["${constructor:-safe}", "safe"],
  ])("%s", (text, filled) => {
    expect(fillIn(text, { KEY: "canary", EMPTY: "" })).toBe(filled);
  });
});

import { describe, expect, it } from "vitest";
import { ChatTemplate } from "./chat-template.ts";

const render = (source: string, variables: Record<string, unknown> = {}) => new ChatTemplate(source).render(variables);

describe("a chat template", () => {
  it("gives the same date on every day", () => {
    expect(render("{{ strftime_now('%d %b %Y, %A %B %H:%M %%') }}")).toBe("01 Jan 2026, Thursday January 00:00 %");
  });
  it("names its own complaint, and what it can't run", () => {
    const boundary = { boundary: "infrastructure", code: "chat_template" };
    expect(() => render("{{ raise_exception('roles must alternate') }}")).toThrow(/refused a conversation: roles must/);
    expect(() => render("{{ x.nope() }}", { x: {} })).toThrow(expect.objectContaining(boundary));
    expect(() => render("{{ 5 | tojson | nope }}")).toThrow(expect.objectContaining(boundary));
    expect(() => new ChatTemplate("{% if %}")).toThrow();
  });
  it("keeps nothing from one rendering to the next", () => {
    const template = new ChatTemplate(
      "{{ kept }}{% set kept = 'x' %}{% set ns = namespace(n=1) %}{{ kept }}{{ ns.n }}",
    );
    expect([template.render({}), template.render({}), template.render({ kept: "y" })]).toEqual(["x1", "x1", "yx1"]);
  });
  it("prints nothing for what is not there", () => {
    expect(render("[{{ a }}{{ b.c }}{{ none }}{{ d | default('e') }}]", { b: {} })).toBe("[e]");
  });
  // What Python gives is compared in e2e/real/template-parity.test.ts; these hold without it.
  it.each([
    ["{{ '  a ' | trim }}|{{ 'xaxx'.strip('x') }}|{{ ' \\n a'.lstrip('\\n') }}", "a|a| \n a"],
    [
      "{{ true }} {{ 1 == 1.0 }} {{ none == none }} {{ [1, 'a\\'b', none, true] }}",
      `True True True [1, "a'b", None, True]`,
    ],
    ["{{ x | tojson }}", '{"é": "\\"\\n", "a": [1, 1e-05, null, true]}'],
    [
      "{{ x | tojson(indent=1, sort_keys=true, ensure_ascii=true) }}",
      '{\n "a": [\n  1,\n  1e-05,\n  null,\n  true\n ],\n "\\u00e9": "\\"\\n"\n}',
    ],
    ["{{ '👍a' | length }}{{ [1, 2] | length }}{{ x | length }}", "222"],
    [
      "{% for i in range(3) %}{{ i ~ (',' if not loop.last else '') }}{% endfor %}{{ range(5, 1, -2) | list }}",
      "0,1,2[5, 3]",
    ],
  ])("%s", (source, expected) => {
    expect(render(source, { x: { é: '"\n', a: [1, 0.00001, null, true] } })).toBe(expected);
  });
});

/** Python: modules are files and folders, documentation is the first string of a body. */

import { textStart } from "../../text-place.ts";
import type { Import, Language } from "./language.ts";

export const python: Language = {
  name: "Python",
  extensions: [".py", ".pyi"],
  grammar: "tree-sitter-python/tree-sitter-python.wasm",
  patterns: "python",
  query: `
(function_definition name: (identifier) @function.name body: (block) @function.body) @function
(class_definition name: (identifier) @class.name body: (block) @class.body) @class
(class_definition superclasses: (argument_list [(identifier) (attribute)] @base))
(decorated_definition) @whole
(call function: [(identifier) (attribute)] @call)
[(import_statement) (import_from_statement) (future_import_statement)] @import
`,
  imports: (text) => {
    const flat = text
      .replace(/#.*$/gm, "")
      .replace(/[\s\\()]+/g, " ")
      .trim();
    const from = /^from ?(\.*) ?([\w.]*) import (.+)$/.exec(flat);
    if (from !== null) {
      const [, dots = "", name = "", names = ""] = from;
      return [{ module: dots + name, alias: "", names: names === "*" ? [["*", "*"]] : listed(names) }];
    }
    const plain = /^import (.+)$/.exec(flat);
    return listed(plain?.[1] ?? "").map(([module, alias]): Import => ({ module, alias, names: [] }));
  },
  modulePaths: (module) => {
    const dots = /^\.*/.exec(module)?.[0].length ?? 0;
    const path = module.slice(dots).replaceAll(".", "/");
    const from = dots === 0 ? "" : dots === 1 ? "./" : "../".repeat(dots - 1);
    const whole = `${from}${path}`.replace(/\/$/, "");
    if (path === "") return [`${from}__init__`];
    return [whole, `${whole}/__init__`];
  },
  doc: (body) => {
    const quoted = /^\s*[rRuUbB]?("""|'''|"|')([\s\S]*?)\1/.exec(body);
    const first = quoted?.[2]?.split("\n").find((line) => line.trim() !== "");
    return textStart(first?.trim() ?? "", 200);
  },
};

const listed = (names: string): [string, string][] =>
  names
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => {
      const [there = "", here = there] = part.split(/ as /);
      return [there.trim(), here.trim()];
    });

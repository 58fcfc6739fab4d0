/** Rust: `impl` blocks give functions their type, modules are files or folders below `src`. */
import { commentLine, type Import, type Language } from "./language.ts";

export const rust: Language = {
  name: "Rust",
  extensions: [".rs"],
  grammar: "tree-sitter-rust/tree-sitter-rust.wasm",
  patterns: "rust",
  query: `
(function_item name: (identifier) @function.name body: (_) @function.body) @function
(function_signature_item name: (identifier) @function.name) @function
(macro_definition name: (identifier) @function.name) @function
(struct_item name: (type_identifier) @class.name body: (_)? @class.body) @class
(enum_item name: (type_identifier) @class.name body: (_) @class.body) @class
(union_item name: (type_identifier) @class.name body: (_) @class.body) @class
(trait_item name: (type_identifier) @class.name body: (_) @class.body) @class
(trait_item bounds: (trait_bounds (_) @base))
(impl_item type: (_) @scope.name) @scope
(mod_item name: (identifier) @scope.name body: (_)) @scope
(call_expression function: [(identifier) (scoped_identifier) (field_expression)] @call)
(macro_invocation macro: (_) @call)
(use_declaration) @import
`,
  ownerName: (text) => /^[&\s]*(?:[\w]+::)*(\w+)/.exec(text)?.[1] ?? "",
  imports: (text) => {
    const path = text.replace(/^(?:pub(?:\([^)]*\))?\s+)?use\s+/, "").replace(/;\s*$/, "");
    return uses(path.replace(/\s+/g, " ").trim(), 0);
  },
  modulePaths: (module) => {
    const parts = module.split("::").filter((part) => part !== "crate" && part !== "");
    const up = parts.filter((part) => part === "super").length;
    const names = parts.filter((part) => part !== "super" && part !== "self");
    const from = up > 0 ? "../".repeat(up) : parts.includes("self") ? "./" : "";
    // The last name may be an item of the module before it.
    return [names, names.slice(0, -1)]
      .filter((path) => path.length > 0)
      .flatMap((path) => [`${from}${path.join("/")}`, `${from}${path.join("/")}/mod`]);
  },
  doc: (_body, above) => commentLine(above),
};

/** `a::{b, c as d}` in its parts; trees deeper than any real one are left out. */
function uses(path: string, depth: number): Import[] {
  if (depth > 8) return [];
  // What opens and does not close is looked through once, not once for each brace.
  const tree = path.endsWith("}") ? /^(.*?)(?:::)?\{(.*)\}$/s.exec(path) : null;
  if (tree !== null) {
    const [, head = "", inside = ""] = tree;
    return topLevelParts(inside).flatMap((part) =>
      uses(part === "self" ? head : head === "" ? part : `${head}::${part}`, depth + 1),
    );
  }
  const [whole = "", alias] = path.split(/ as /);
  const parts = whole.trim().split("::");
  const last = parts.at(-1) ?? "";
  if (parts.length < 2) return [{ module: whole.trim(), alias: alias ?? last, names: [] }];
  return [{ module: parts.slice(0, -1).join("::"), alias: alias ?? last, names: [[last, alias ?? last]] }];
}

function topLevelParts(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const letter of text) {
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    if (letter === "," && depth === 0) {
      parts.push(part.trim());
      part = "";
    } else part += letter;
  }
  return [...parts, part.trim()].filter((one) => one !== "");
}

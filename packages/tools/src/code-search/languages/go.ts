/** Go: methods belong to their receiver's type, packages are folders. */
import { commentLine, type Language } from "./language.ts";

export const go: Language = {
  name: "Go",
  extensions: [".go"],
  grammar: "tree-sitter-go/tree-sitter-go.wasm",
  patterns: "go",
  query: `
(function_declaration name: (identifier) @function.name body: (_)? @function.body) @function
(method_declaration receiver: (parameter_list) @function.owner name: (field_identifier) @function.name body: (_)? @function.body) @function
(type_spec name: (type_identifier) @class.name type: (_) @class.body) @class
(type_declaration (type_spec)) @whole
(field_declaration !name type: [(type_identifier) (qualified_type)] @base)
(call_expression function: [(identifier) (selector_expression)] @call)
(import_spec) @import
`,
  ownerName: (text) => /\(\s*(?:\w+\s+)?\*?\s*(\w+)/.exec(text)?.[1] ?? "",
  imports: (text) => {
    const [, alias = "", module = ""] = /^(?:([\w.]+)\s+)?["\x60]([^"\x60]+)["\x60]/.exec(text.trim()) ?? [];
    return module === "" ? [] : [{ module, alias: alias || (module.split("/").at(-1) ?? ""), names: [] }];
  },
  // A package is every file of a folder: its path ends as the import does, behind the module's own name.
  modulePaths: (module) => {
    const parts = module.split("/");
    return parts.map((_, place) => `${parts.slice(place).join("/")}/`);
  },
  doc: (_body, above) => commentLine(above),
};

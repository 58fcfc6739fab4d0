/** Java: a file is a public type, packages are folders. */
import { commentLine, type Language } from "./language.ts";

export const java: Language = {
  name: "Java",
  extensions: [".java"],
  grammar: "tree-sitter-java/tree-sitter-java.wasm",
  patterns: "java",
  query: `
(method_declaration name: (identifier) @function.name body: (_)? @function.body) @function
(constructor_declaration name: (identifier) @function.name body: (_) @function.body) @function
(class_declaration name: (identifier) @class.name body: (_) @class.body) @class
(interface_declaration name: (identifier) @class.name body: (_) @class.body) @class
(enum_declaration name: (identifier) @class.name body: (_) @class.body) @class
(record_declaration name: (identifier) @class.name body: (_) @class.body) @class
(superclass (_) @base)
(super_interfaces (type_list (_) @base))
(extends_interfaces (type_list (_) @base))
(method_invocation name: (identifier) @call)
(object_creation_expression type: (_) @call)
(import_declaration) @import
`,
  imports: (text) => {
    const path = /^import\s+(?:static\s+)?([\w.]+(?:\.\*)?)\s*;?$/.exec(text.trim())?.[1];
    if (path === undefined) return [];
    const name = path.split(".").at(-1) ?? "";
    return [{ module: path.replace(/\.\*$/, ""), alias: name, names: name === "*" ? [["*", "*"]] : [[name, name]] }];
  },
  modulePaths: (module) => {
    const path = module.replaceAll(".", "/");
    // A static import names a member of the type before it.
    return [path, path.replace(/\/[^/]+$/, ""), `${path}/`];
  },
  doc: (_body, above) => commentLine(above),
};

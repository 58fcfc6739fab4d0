/** TypeScript, TSX and JavaScript: functions are declared, kept in constants or methods; modules are named by relative paths. */
import { commentLine, type Import, type Language } from "./language.ts";

const shared = `
(function_declaration name: (identifier) @function.name body: (_) @function.body) @function
(generator_function_declaration name: (identifier) @function.name body: (_) @function.body) @function
(method_definition name: (_) @function.name body: (_) @function.body) @function
(variable_declarator name: (identifier) @function.name value: [
  (arrow_function body: (_) @function.body)
  (function_expression body: (_) @function.body)
]) @function
(call_expression function: [(identifier) (member_expression)] @call)
(new_expression constructor: (_) @call)
[(lexical_declaration) (export_statement)] @whole
(import_statement) @import
(export_statement source: (string)) @import
`;
const typed = `${shared}
(class_declaration name: (type_identifier) @class.name body: (_) @class.body) @class
(abstract_class_declaration name: (type_identifier) @class.name body: (_) @class.body) @class
(interface_declaration name: (type_identifier) @class.name body: (_) @class.body) @class
(enum_declaration name: (identifier) @class.name body: (_) @class.body) @class
(function_signature name: (identifier) @function.name) @function
(public_field_definition name: (_) @function.name value: (arrow_function body: (_) @function.body)) @function
(extends_clause value: (_) @base)
(implements_clause (_) @base)
(extends_type_clause type: (_) @base)
`;
const untyped = `${shared}
(class_declaration name: (identifier) @class.name body: (_) @class.body) @class
(field_definition property: (_) @function.name value: (arrow_function body: (_) @function.body)) @function
(class_heritage (_) @base)
`;

const common: Pick<Language, "imports" | "modulePaths" | "doc"> = {
  imports: (text) => {
    const module = /(?:from|import)\s*["']([^"']+)["']/.exec(text)?.[1];
    if (module === undefined) return [];
    const names = /\{([^}]*)\}/.exec(text)?.[1] ?? "";
    const alias = /\*\s+as\s+([\w$]+)/.exec(text)?.[1] ?? "";
    const standard = /^import\s+(?:type\s+)?([\w$]+)/.exec(text)?.[1];
    const listed = names
      .split(",")
      .map((part) => part.trim().replace(/^type\s+/, ""))
      .filter((part) => part !== "")
      .map((part): [string, string] => {
        const [there = "", here = there] = part.split(/\s+as\s+/);
        return [there, here];
      });
    const all: Import["names"] =
      standard === undefined || standard === "from" ? listed : [...listed, ["default", standard]];
    return [{ module, alias, names: all }];
  },
  modulePaths: (module) => {
    if (!/^\.\.?(\/|$)/.test(module)) return [];
    const bare = module.replace(/\.(?:[cm]?[jt]sx?)$/, "");
    return [bare, module, `${bare}/index`];
  },
  doc: (_body, above) => commentLine(above),
};

export const typescript: Language = {
  ...common,
  name: "TypeScript",
  extensions: [".ts", ".mts", ".cts"],
  grammar: "tree-sitter-typescript/tree-sitter-typescript.wasm",
  patterns: "TypeScript",
  query: typed,
};
export const tsx: Language = {
  ...common,
  name: "TSX",
  extensions: [".tsx"],
  grammar: "tree-sitter-typescript/tree-sitter-tsx.wasm",
  patterns: "Tsx",
  query: typed,
};
export const javascript: Language = {
  ...common,
  name: "JavaScript",
  extensions: [".js", ".jsx", ".mjs", ".cjs"],
  grammar: "tree-sitter-javascript/tree-sitter-javascript.wasm",
  // The TSX grammar reads JavaScript and JSX alike.
  patterns: "Tsx",
  query: untyped,
};

/** A build context's `.dockerignore`: which of its files are not sent. The last line that matches decides. */

interface Rule {
  readonly pattern: RegExp;
  readonly keeps: boolean;
}

export class DockerIgnore {
  readonly #rules: readonly Rule[];
  /** Then a folder that is left out may hold files that are not. */
  readonly looksInside: boolean;

  constructor(text: string) {
    this.#rules = text.split("\n").flatMap(ruleOf);
    this.looksInside = this.#rules.some((rule) => rule.keeps);
  }

  /** @param path in the context, with `/` and no dots */
  leavesOut(path: string): boolean {
    let out = false;
    for (const { pattern, keeps } of this.#rules) {
      if (out === keeps && matchesAny(pattern, path)) out = !keeps;
    }
    return out;
  }
}

/** A rule for a folder is one for all in it. */
function matchesAny(pattern: RegExp, path: string): boolean {
  for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
    if (pattern.test(path.slice(0, end))) return true;
  }
  return false;
}

function ruleOf(line: string): Rule[] {
  const plain = line.replace(/^\uFEFF/, "").trim();
  if (plain === "" || plain.startsWith("#")) return [];
  const keeps = plain.startsWith("!");
  const parts = (keeps ? plain.slice(1).trim() : plain).split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0) return [];
  return [{ pattern: new RegExp(`^${parts.map(partSource).join("")}$`, "s"), keeps }];
}

/** `**` stands for any folders; it swallows the slash beside it. */
function partSource(part: string, at: number, all: readonly string[]): string {
  const last = at === all.length - 1;
  if (part === "**") return last ? ".*" : "(?:.*/)?";
  const source = part
    .replaceAll("**", "*")
    .replace(/\\(.)|\*|\?|\[(\^?)((?:\\.|[^\]\\])+)\]|[\\^$.|+(){}[\]]/g, (text, escaped, not, set) => {
      if (escaped !== undefined) return literal(escaped);
      if (text === "*") return "[^/]*";
      if (text === "?") return "[^/]";
      if (set !== undefined) return `[${not}${set.replace(/[[\]]/g, "\\$&")}]`;
      return literal(text);
    });
  return last ? source : `${source}/`;
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

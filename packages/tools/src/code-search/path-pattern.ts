/**
 * Which files a query is about: a glob, a path, or a part of one. `**` spans folders, and stands for none as well. Pure.
 */

export const everyFile = "**/*";

/** @param root absolute path of the tree: patterns that begin with it are taken as within it */
export function pathMatcher(pattern: string, root: string): (path: string) => boolean {
  const plain = inTree(pattern.trim().replace(/^(["'])(.*)\1$/, "$2"), root);
  if (plain === "" || plain === "." || plain === everyFile) return () => true;
  if (!/[*?[{]/.test(plain)) return (path) => path === plain || path.startsWith(`${plain}/`) || path.includes(plain);
  const expression = globExpression(plain);
  const anywhere = plain.includes("/") ? null : globExpression(`**/${plain}`);
  return (path) => expression.test(path) || (anywhere?.test(path) ?? false);
}

/** A path as the index has it: relative to the root. */
export function inTree(path: string, root: string): string {
  const clean = path.replace(/^(\.\/)+/, "").replace(/\/+$/, "");
  if (clean === root) return "";
  const folder = root.endsWith("/") ? root : `${root}/`;
  return clean.startsWith(folder) ? clean.slice(folder.length) : clean.replace(/^\/+/, "");
}

const maxPattern = 500;

function globExpression(given: string): RegExp {
  // The same again means the same, and would be tried in every combination.
  const glob = given.replace(/(?:\*\*\/)+/g, "**/").replace(/\*{3,}/g, "**");
  let source = "";
  for (let at = 0; at < Math.min(glob.length, maxPattern); at++) {
    const rest = glob.slice(at);
    const letter = glob.charAt(at);
    if (rest.startsWith("**/")) {
      source += "(?:[^/]+/)*";
      at += 2;
    } else if (rest.startsWith("**")) {
      source += ".*";
      at += 1;
    } else if (letter === "*") source += "[^/]*";
    else if (letter === "?") source += "[^/]";
    else if (letter === "[" && /^\[[^\]/]+\]/.test(rest)) {
      const end = glob.indexOf("]", at);
      const inside = glob
        .slice(at + 1, end)
        .replaceAll("\\", "\\\\")
        .replaceAll("[", "\\[");
      source += `[${inside.replace(/^!/, "^").replace(/^\^(?=$)/, "\\^")}]`;
      at = end;
    } else if (letter === "{" && /^\{[^{}]+\}/.test(rest)) {
      const end = glob.indexOf("}", at);
      source += `(?:${glob
        .slice(at + 1, end)
        .split(",")
        .map(escaped)
        .join("|")})`;
      at = end;
    } else source += escaped(letter);
  }
  try {
    return new RegExp(`^${source}$`, "u");
  } catch {
    // A class such as [z-a]: no glob then, but text.
    return new RegExp(`^${escaped(glob)}$`, "u");
  }
}

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

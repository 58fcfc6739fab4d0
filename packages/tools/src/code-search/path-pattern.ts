/**
 * Which files a query is about: a glob, a path, or a part of one. `**` spans folders, and stands for none as well. Pure.
 */
import { globMatcher } from "./glob-matcher.ts";

export const everyFile = "**/*";

/** @param root absolute path of the tree: patterns that begin with it are taken as within it */
export function pathMatcher(pattern: string, root: string): (path: string) => boolean {
  const plain = inTree(pattern.trim().replace(/^(["'])(.*)\1$/, "$2"), root);
  if (plain === "" || plain === "." || plain === everyFile) return () => true;
  if (!/[*?[{]/.test(plain)) return (path) => path === plain || path.startsWith(`${plain}/`) || path.includes(plain);
  return globMatcher(plain);
}

/** A path as the index has it: relative to the root. */
export function inTree(path: string, root: string): string {
  const clean = path.replace(/^(\.\/)+/, "").replace(/\/+$/, "");
  if (clean === root) return "";
  const folder = root.endsWith("/") ? root : `${root}/`;
  return clean.startsWith(folder) ? clean.slice(folder.length) : clean.replace(/^\/+/, "");
}

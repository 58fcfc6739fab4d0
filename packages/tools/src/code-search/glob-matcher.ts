/**
 * Whether a path fits a glob: `*`, `?`, `[abc]`, `[!abc]`, `{one,other}` and `**`, which spans folders. Invariant: the time is at most that of
 * reading the path once for each part of the glob, whatever both hold: they are an agent's, and other rollouts wait for the answer. Pure.
 */

/** From the places of a path that what stands before it leads to, to those that it leads to. Places count characters read. */
type Part = (from: readonly boolean[], path: readonly string[]) => boolean[];

const maxPattern = 500;

/** One without a slash is that of a name, in any folder. */
export function globMatcher(glob: string): (path: string) => boolean {
  const own = partsOf(glob);
  if (own === null) return (path) => path === glob;
  const parts = glob.includes("/") ? own : [anyFolders, ...own];
  return (path) => {
    const letters = [...path];
    let reached = [true, ...letters.map(() => false)];
    for (const part of parts) {
      if (!reached.includes(true)) return false;
      reached = part(reached, letters);
    }
    return reached[letters.length] === true;
  };
}

/** Null: a class such as [z-a] makes no glob, but text. */
function partsOf(glob: string): Part[] | null {
  const parts: Part[] = [];
  let rest = glob.slice(0, maxPattern);
  while (rest !== "") {
    const [, set] = /^\[([^\]/]+)\]/.exec(rest) ?? [];
    const [, words] = /^\{([^{}]+)\}/.exec(rest) ?? [];
    let taken = 1;
    if (rest.startsWith("**/")) {
      parts.push(anyFolders);
      taken = 3;
    } else if (rest.startsWith("**")) {
      parts.push(repeated(() => true));
      taken = 2;
    } else if (rest.startsWith("*")) parts.push(repeated(isInName));
    else if (rest.startsWith("?")) parts.push(one(isInName));
    else if (set !== undefined) {
      const inSet = setOf(set);
      if (inSet === null) return null;
      parts.push(one(inSet));
      taken = set.length + 2;
    } else if (words !== undefined) {
      parts.push(oneOf(words.split(",").map((word) => [...word])));
      taken = words.length + 2;
    } else {
      const letter = String.fromCodePoint(rest.codePointAt(0) ?? 0);
      parts.push(literal(letter));
      taken = letter.length;
    }
    rest = rest.slice(taken);
  }
  return parts;
}

const isInName = (letter: string): boolean => letter !== "/";

function setOf(inside: string): ((letter: string) => boolean) | null {
  const plain = inside.replaceAll("\\", "\\\\").replaceAll("[", "\\[");
  const source = plain.replace(/^!/, "^").replace(/^\^$/, "\\^");
  try {
    const set = new RegExp(`^[${source}]$`, "u");
    return (letter) => set.test(letter);
  } catch {
    // A range that runs backwards.
    return null;
  }
}

const one =
  (fits: (letter: string) => boolean): Part =>
  (from, path) => [false, ...path.map((letter, at) => from[at] === true && fits(letter))];

const literal = (wanted: string): Part => one((letter) => letter === wanted);

const repeated =
  (fits: (letter: string) => boolean): Part =>
  (from, path) => {
    const to = [...from];
    for (const [at, letter] of path.entries()) to[at + 1] ||= to[at] === true && fits(letter);
    return to;
  };

const oneOf =
  (words: readonly (readonly string[])[]): Part =>
  (from, path) => {
    const to = from.map(() => false);
    for (const [at, isReached] of from.entries()) {
      if (!isReached) continue;
      for (const word of words) if (word.every((letter, n) => path[at + n] === letter)) to[at + word.length] = true;
    }
    return to;
  };

/** None, or names with a slash behind each. */
const anyFolders: Part = (from, path) => {
  const to = [...from];
  let isInside = false;
  for (const [at, letter] of path.entries()) {
    if (letter === "/") {
      to[at + 1] ||= isInside;
      isInside = false;
    } else isInside ||= to[at] === true;
  }
  return to;
};

/**
 * `search`: finds code in the rollout's sandbox by names, words, structure and relations. The index follows every edit, whoever
 * made it, and lives outside of the sandbox: nothing is written into the repository. A lost sandbox is no observation.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { z } from "zod";
import { defineTool } from "../define-tool.ts";
import { textStart } from "../text-place.ts";
import { IndexThreads } from "./index-threads.ts";
import { SandboxTree } from "./sandbox-tree.ts";
import { SearchRequest } from "./search-request.ts";

const maxCharacters = 24_000;

/** What an instance's `state` may hold for this tool. */
export const CodeSearchScope = z.object({
  codeSearch: z
    .object({
      /** Absolute path of the tree to search; absent = the sandbox's workdir. */
      root: z.string().startsWith("/").optional(),
    })
    .prefault({}),
});

const threads = new IndexThreads();
/** Weak: a tree goes with its rollout's sandbox. */
const trees = new WeakMap<Sandbox, Map<string, SandboxTree>>();

function treeOf(sandbox: Sandbox, root: string): SandboxTree {
  const own = trees.get(sandbox) ?? new Map<string, SandboxTree>();
  trees.set(sandbox, own);
  const known = own.get(root);
  if (known !== undefined) return known;
  const tree = new SandboxTree(threads, { sandbox, root });
  own.set(root, tree);
  return tree;
}

export const search = defineTool({
  name: "search",
  description: [
    "Search the repository's code. The index is always up to date with your edits.",
    "* search_terms: names such as `Class.method`, ids such as `path/file.py:Class.method`, paths, exact code, or a description.",
    "* line_nums with one file in file_path_or_pattern: the functions and classes that these lines are in.",
    "* pattern: code with holes, matched by structure.",
    "* relation (with search_terms): contains, imports, invokes, inherits, imported_by, invoked_by or inherited_by, and a depth.",
    "An exact id shows the whole code; a name of few entities shows previews, a frequent one a list.",
  ].join("\n"),
  arguments: SearchRequest,
  idempotent: true,
  call: async (request, { instance, sandbox, signal }) => {
    const { search_terms = [], line_nums = [], pattern = "" } = request;
    if (search_terms.every((term) => term.trim() === "") && line_nums.length === 0 && pattern.trim() === "") {
      const message = "search needs search_terms, a pattern, or line_nums with a file in file_path_or_pattern";
      return { output: message, error: { code: "empty_search", message } };
    }
    if (sandbox === undefined) {
      throw new BoundaryError("infrastructure", "no_sandbox", "search needs a task with a sandbox");
    }
    const scope = CodeSearchScope.safeParse(instance);
    if (!scope.success) {
      throw new BoundaryError("infrastructure", "bad_search", "the instance's search settings can't be read", {
        cause: scope.error,
      });
    }
    const tree = treeOf(sandbox, scope.data.codeSearch.root ?? sandbox.workdir);
    return shortened(await tree.search(request, signal));
  },
});

function shortened(answer: string): { readonly output: string; readonly wholeBytes?: number } {
  if (answer.length <= maxCharacters) return { output: answer };
  const last = answer.lastIndexOf("\n", maxCharacters);
  const kept = textStart(answer, last > maxCharacters / 2 ? last : maxCharacters);
  return {
    output: `${kept}\n... the rest of the answer is left out.\nHint: Ask for less at once, or narrow the search with file_path_or_pattern.`,
    wholeBytes: Buffer.byteLength(answer),
  };
}

/**
 * An agent's repository before its first turn. Invariants: nothing later than its beginning can be read (no ref, no reflog, no
 * object of a later commit); a copy of the beginning lies beside it, which collecting compares with whatever the agent did to the
 * repository's own history and settings.
 */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { type BaseRow, makeBase } from "./base.ts";
import { mustRun, rawAttributes } from "./in-repository.ts";

export interface SetUpOptions {
  readonly history: "past" | "none";
  readonly timeoutMs: number;
}

/** Of the copy, for a repository in this folder. */
export const copyFolder = (workdir: string): string => `/var/tmp/rolldeck-base${workdir}`;

/** @throws BoundaryError("sandbox") that says what was seen */
export async function setUpRepository(
  row: BaseRow,
  sandbox: Sandbox,
  { history, timeoutMs }: SetUpOptions,
  signal: AbortSignal,
): Promise<void> {
  await makeBase(row, sandbox, { forAgent: true, timeoutMs, boundary: "sandbox" }, signal);
  // Its own past is the right code.
  const single = history === "none" || row.kind === "swe-smith";
  const words = [sandbox.workdir, single ? "none" : "past", copyFolder(sandbox.workdir)];
  const run = { arguments: words, timeoutMs, boundary: "sandbox" } as const;
  await mustRun(sandbox, { ...run, script: forgetLater, what: "taking later history away" }, signal);
  await mustRun(sandbox, { ...run, script: copyBase, what: "copying the beginning" }, signal);
}

/** Commits are counted, not trusted: what is in the store and not in the past is later. Packs are only rewritten where it is. */
const forgetLater = `
cd "$1" || exit 3
dir=$(g rev-parse --absolute-git-dir) || exit 3
branch=$(g symbolic-ref -q --short HEAD || echo main)
head=$(g rev-parse HEAD) || exit 3
if [ "$2" = none ]; then head=$(g commit-tree "$head^{tree}" -m base) || fail "the beginning can't be committed"; fi
g update-ref --no-deref HEAD "$head" || exit 3
g for-each-ref --format='%(refname)' > "$home/all"
if [ "$2" = none ]; then : > "$home/keep"; else g for-each-ref --merged HEAD --format='%(refname)' refs/tags > "$home/keep"; fi
grep -vxFf "$home/keep" "$home/all" | sed 's/^/delete /' | g update-ref --no-deref --stdin || fail "refs can't be deleted"
g remote | while read -r name; do g remote remove "$name"; done
rm -rf "$dir/logs" "$dir/worktrees" "$dir/rr-cache" "$dir/objects/info/commit-graph" "$dir/objects/info/commit-graphs"
rm -f "$dir/FETCH_HEAD" "$dir/ORIG_HEAD" "$dir/MERGE_HEAD" "$dir/CHERRY_PICK_HEAD" "$dir/REVERT_HEAD" "$dir/AUTO_MERGE"
rm -f "$dir"/objects/pack/*.keep "$dir"/objects/pack/multi-pack-index*
g update-ref "refs/heads/$branch" "$head" && g symbolic-ref HEAD "refs/heads/$branch" || fail "no branch can be made"
later() {
  all=$(g cat-file --batch-all-objects --unordered --batch-check='%(objecttype)' | grep -c '^commit$')
  [ "$all" -gt "$(g rev-list --count --all)" ]
}
if later; then
  g repack -a -d -q && g prune --expire=now || fail "later commits can't be taken away"
  if later; then fail "later commits can still be read"; fi
fi
git config user.name agent && git config user.email agent@example.org || exit 3
if [ "$(stat -c %u .)" != "$(id -u)" ]; then git config --file /etc/gitconfig --add safe.directory "$1" || true; fi
`;

/**
 * One commit without a past, of bytes as they lie in the work tree, in a store of its own. What git ignored then it ignores for
 * ever: an agent that changes \`.gitignore\` does not hand in what was built before.
 */
const copyBase = `
cd "$1" || exit 3
dir=$(g rev-parse --absolute-git-dir) && head=$(g rev-parse HEAD) || exit 3
format=$(g rev-parse --show-object-format 2>/dev/null || echo sha1)
exclude=$(g rev-parse --git-path info/exclude)
g ls-files -o -i --exclude-standard --directory -z | tr '\\0' '\\n' | head -n 20000 > "$home/ignored"
rm -rf "$3" && mkdir -p "$3" && chmod 700 "$3" || fail "there is no room for a copy of the beginning"
if [ "$format" = sha1 ]; then g init -q --bare "$3"; else g init -q --bare --object-format="$format" "$3"; fi || exit 3
mkdir -p "$3/info" "$3/objects/info" "$3/objects/pack"
printf '%s\\n' '${rawAttributes}' > "$3/info/attributes"
cat "$exclude" > "$3/info/exclude" 2>/dev/null || : > "$3/info/exclude"
sed 's/[][\\\\*?!# ]/\\\\&/g; s#^#/#' "$home/ignored" >> "$3/info/exclude"
printf '%s\\n' "$dir/objects" > "$3/objects/info/alternates"
export GIT_DIR="$3" GIT_WORK_TREE="$1" GIT_INDEX_FILE="$3/base.index"
g read-tree "$head" || exit 3
g add -A --ignore-errors . || true
base=$(g commit-tree "$(g write-tree)" -m base) && g update-ref refs/heads/base "$base" || exit 3
printf '%s\\n' "$base" | g pack-objects -q --revs --window=0 "$3/objects/pack/pack" > /dev/null || exit 3
rm -f "$3/objects/info/alternates"
g cat-file -e 'refs/heads/base^{tree}' || fail "the copy of the beginning can't be read"
`;

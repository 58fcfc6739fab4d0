/**
 * A source tree as a git repository with one commit: author, dates and message are fixed and nothing of the machine's own settings
 * is used, so that equal sources give the equal commit everywhere.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runTool } from "./run-tool.ts";

/** What Python leaves behind is nobody's change. Kept beside the repository's own list, which may be missing in archives of sources. */
export const ignoredFiles: readonly string[] = ["__pycache__/", "*.py[cod]", ".pytest_cache/"];

const identity = "Rolldeck";
const address = "rolldeck@localhost";
const date = "2000-01-01T00:00:00Z";

const environment = {
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_AUTHOR_NAME: identity,
  GIT_AUTHOR_EMAIL: address,
  GIT_AUTHOR_DATE: date,
  GIT_COMMITTER_NAME: identity,
  GIT_COMMITTER_EMAIL: address,
  GIT_COMMITTER_DATE: date,
  // No clean-up in the background, no log of what HEAD was: each could hold on to the fix.
  GIT_CONFIG_COUNT: "2",
  GIT_CONFIG_KEY_0: "gc.auto",
  GIT_CONFIG_VALUE_0: "0",
  GIT_CONFIG_KEY_1: "core.logAllRefUpdates",
  GIT_CONFIG_VALUE_1: "false",
};

/** Of a diff that is to be applied elsewhere: every byte, no renames, no abbreviations. */
const exactDiff = ["--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-renames", "--no-textconv"];

export class SourceRepository {
  private constructor(
    readonly folder: string,
    readonly baseCommit: string,
    private readonly signal: AbortSignal,
  ) {}

  /** The tree as it lies there becomes the only commit; files that the package itself ignores are in it, too. */
  static async commit(folder: string, signal: AbortSignal): Promise<SourceRepository> {
    const git = (...args: string[]) => runTool("git", args, { cwd: folder, signal, env: environment });
    await rm(join(folder, ".git"), { recursive: true, force: true });
    await git("init", "--quiet", "--template=", "--initial-branch=main");
    await git("config", "core.fileMode", "true");
    await mkdir(join(folder, ".git/info"), { recursive: true });
    await writeFile(join(folder, ".git/info/exclude"), `${ignoredFiles.join("\n")}\n`);
    await git("add", "--all", "--force");
    await git("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", "Sources before the fix");
    await git("gc", "--quiet", "--prune=now");
    const commit = await git("rev-parse", "HEAD");
    return new SourceRepository(folder, commit.toString().trim(), signal);
  }

  /** Paths of files that differ from the commit, new and deleted ones too. */
  async changedFiles(): Promise<string[]> {
    await this.#git("add", "--all", "--force");
    const names = await this.#git("diff", "--cached", "--name-only", "--no-renames", "-z", this.baseCommit);
    return names.toString().split("\0").filter(Boolean);
  }

  /** A patch of these files, against the commit. */
  async patchOf(files: readonly string[]): Promise<Buffer> {
    if (files.length === 0) return Buffer.alloc(0);
    await this.#git("add", "--all", "--force");
    return this.#git("diff", "--cached", ...exactDiff, this.baseCommit, "--", ...files);
  }

  /** Whether the commit has this file. */
  async has(file: string): Promise<boolean> {
    return (await this.#git("ls-tree", "--name-only", "-z", this.baseCommit, "--", file)).length > 0;
  }

  /** The tree is the commit's again. */
  async restore(): Promise<void> {
    await this.#git("reset", "--quiet", "--hard", this.baseCommit);
    await this.#git("clean", "--quiet", "-fdx");
    // What was staged on the way must not be found by who looks into the objects: the fix is among it.
    await this.#git("gc", "--quiet", "--prune=now");
    await rm(join(this.folder, ".git/ORIG_HEAD"), { force: true });
  }

  #git(...args: string[]): Promise<Buffer> {
    return runTool("git", args, { cwd: this.folder, signal: this.signal, env: environment });
  }
}

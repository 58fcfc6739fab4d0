/**
 * What programs meant in an image, known once per image and process, and put right before a verifier runs in an agent's sandbox.
 * Invariant: where it can't be put right, nothing is graded.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { changeFlags, listPrograms, type ProgramChanges, type Programs, programChanges } from "./guarded-programs.ts";
import { runScript } from "./in-sandbox.ts";

const maxKnown = 1000;
const maxProgramBytes = 256 * 1024 * 1024;
const asRoot = { user: "root" } as const;

export class ProgramGuard {
  readonly #known = new Map<string, Programs>();

  /** Of a sandbox that no agent has touched. @param image names it among all @throws BoundaryError("sandbox") */
  async learn(image: string, sandbox: Sandbox, signal: AbortSignal): Promise<Programs> {
    const known = this.#known.get(image);
    if (known !== undefined) return known;
    const programs = await listPrograms(sandbox, asRoot, signal);
    const oldest = this.#known.keys().next();
    if (this.#known.size >= maxKnown && !oldest.done) this.#known.delete(oldest.value);
    this.#known.set(image, programs);
    return programs;
  }

  /**
   * @param fresh opens an untouched sandbox of the image; null where none can be had
   * @returns what people are told
   * @throws BoundaryError("verifier", "programs_changed") when they can't be put right
   */
  async putRight(
    image: string,
    sandbox: Sandbox,
    fresh: (() => Promise<Sandbox>) | null,
    signal: AbortSignal,
  ): Promise<string[]> {
    let untouched: Sandbox | null = null;
    const untouchedSandbox = async (): Promise<Sandbox | null> => {
      untouched ??= fresh === null ? null : await fresh();
      return untouched;
    };
    const known = this.#known.get(image);
    const source = known === undefined ? await untouchedSandbox() : null;
    const programs = known ?? (source === null ? null : await this.learn(image, source, signal));
    // Another worker set it up: the grading at the end looks at it, and can open a sandbox.
    if (programs === null) return [];
    const changes = programChanges(programs, await listPrograms(sandbox, asRoot, signal));
    if (isNothing(changes)) return [];
    await removeFiles(sandbox, [...changes.shadows, ...changes.replaced], signal);
    if (changes.replaced.length > 0) await putBack(changes, await untouchedSandbox(), sandbox, signal);
    const after = programChanges(programs, await listPrograms(sandbox, asRoot, signal));
    if (!isNothing(after)) throw notRight(after);
    return changeFlags(changes);
  }
}

const isNothing = ({ shadows, replaced }: ProgramChanges): boolean => shadows.length === 0 && replaced.length === 0;

const notRight = (changes: ProgramChanges): BoundaryError =>
  new BoundaryError(
    "verifier",
    "programs_changed",
    `can't be graded in place: the agent ${changeFlags(changes).join(", ")}`,
  );

/** As the agent's user first: root has no power over the folders of others here. */
async function removeFiles(
  sandbox: Sandbox,
  files: readonly { readonly path: string }[],
  signal: AbortSignal,
): Promise<void> {
  const paths = files.map(({ path }) => path);
  for (const options of [{}, asRoot]) {
    await runScript(
      sandbox,
      'rm -rf -- "$@" 2>/dev/null || :',
      "taking files away",
      { ...options, arguments: paths },
      signal,
    );
  }
}

async function putBack(
  changes: ProgramChanges,
  source: Sandbox | null,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  if (source === null) throw notRight(changes);
  for (const { path } of changes.replaced) {
    const bytes = await source.readFile(path, { maxBytes: maxProgramBytes }, signal);
    await sandbox.writeFile(path, bytes, { mode: 0o755, ...asRoot }, signal);
  }
}

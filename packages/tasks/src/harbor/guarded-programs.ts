/**
 * Programs that test scripts run by name. An agent who may write to the folders of PATH can put its own `python3` there, and the
 * verifier would run that. So what each name meant in the image is known, and what means something else at grading is told and put
 * back. What this can't see: libraries, modules and configuration that such a program loads (docs/harbor.md).
 */

import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { runScript, type ScriptOptions } from "./in-sandbox.ts";

/** Package managers are not among them: agents update them in good faith, and only what they install matters. */
const guardedNames =
  "sh bash dash env busybox python python3 pytest py.test node perl cat cp mv rm mkdir chmod echo printf test [ true false grep sed awk cut tr head tail sort uniq wc find xargs tee diff cmp ls stat sha256sum md5sum date timeout git";

/** Loaded by programs on their own; where the image has none, nobody but an agent put one there. */
const loadedFiles =
  "/etc/ld.so.preload /root/.local/lib/python3*/site-packages/sitecustomize.py /root/.local/lib/python3*/site-packages/usercustomize.py /home/*/.local/lib/python3*/site-packages/sitecustomize.py /home/*/.local/lib/python3*/site-packages/usercustomize.py /usr/lib/python3*/sitecustomize.py /usr/lib/python3*/usercustomize.py /usr/lib/python3/dist-packages/sitecustomize.py /usr/lib/python3/dist-packages/usercustomize.py /usr/local/lib/python3*/sitecustomize.py /usr/local/lib/python3*/usercustomize.py /usr/local/lib/python3*/dist-packages/sitecustomize.py /usr/local/lib/python3*/dist-packages/usercustomize.py /usr/local/lib/python3*/site-packages/sitecustomize.py /usr/local/lib/python3*/site-packages/usercustomize.py";

/** By name: where it is found, first place first, and the digest of what is there. */
export type Programs = ReadonlyMap<string, readonly { readonly path: string; readonly digest: string }[]>;

/** Prints digests and paths, with the folders of the image's own PATH in their order, in few processes. */
const listScript = `
set --
for name in ${guardedNames}; do
  rest=$task_path:
  while [ -n "$rest" ]; do
    folder=\${rest%%:*}; rest=\${rest#*:}
    file=$folder/$name
    [ -n "$folder" ] && [ -f "$file" ] && [ -x "$file" ] && set -- "$@" "$file"
  done
done
for file in ${loadedFiles}; do [ -e "$file" ] && set -- "$@" "$file"; done
[ $# -eq 0 ] || sha256sum -- "$@" 2>/dev/null || :
`;
const line = /^([0-9a-f]{64}) [ *](\/.+)$/u;
const guarded = new Set(guardedNames.split(" "));

/** @throws BoundaryError("sandbox") */
export async function listPrograms(sandbox: Sandbox, options: ScriptOptions, signal: AbortSignal): Promise<Programs> {
  const printed = await runScript(sandbox, listScript, "the listing of programs", options, signal);
  const programs = new Map<string, { path: string; digest: string }[]>();
  for (const each of printed.split("\n")) {
    const [, digest = "", path = ""] = line.exec(each) ?? [];
    if (path === "") continue;
    const last = path.slice(path.lastIndexOf("/") + 1);
    const name = guarded.has(last) ? last : path;
    programs.set(name, [...(programs.get(name) ?? []), { path, digest }]);
  }
  return programs;
}

export interface ProgramChanges {
  /** Files before the image's own, to be taken away. */
  readonly shadows: readonly { readonly name: string; readonly path: string }[];
  /** The image's own that say something else now, or are gone. */
  readonly replaced: readonly { readonly name: string; readonly path: string }[];
}

/** Names that the image had; what it had not is not guarded. */
export function programChanges(image: Programs, now: Programs): ProgramChanges {
  const shadows: { name: string; path: string }[] = [];
  const replaced: { name: string; path: string }[] = [];
  for (const [name, places] of image) {
    const first = places[0];
    if (first === undefined) continue;
    const present = now.get(name) ?? [];
    const own = present.findIndex(({ path }) => path === first.path);
    const before = present.slice(0, own === -1 ? present.length : own);
    for (const { path } of before) if (!places.some((place) => place.path === path)) shadows.push({ name, path });
    if (present[own]?.digest !== first.digest) replaced.push({ name, path: first.path });
  }
  // A file that is its own name is one that programs load: where the image has none, a new one comes before nothing.
  for (const [name, [place]] of now) {
    if (!image.has(name) && place?.path === name) shadows.push({ name, path: name });
  }
  return { shadows, replaced };
}

/** What people are told of it. */
export const changeFlags = ({ shadows, replaced }: ProgramChanges): string[] => [
  ...new Set([
    ...shadows.map(({ name }) => (name.startsWith("/") ? `added ${name}` : `put its own ${name} before the image's`)),
    ...replaced.map(({ name }) => `changed ${name}`),
  ]),
];

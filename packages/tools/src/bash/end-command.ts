/**
 * Ends a running command, or a whole shell, and all it started: TERM, a second, then KILL until none is left. Those are its
 * descendants, whatever session they moved to, and what started after it and has lost its parent. Background jobs of earlier commands
 * live on when a command is ended, unless only the whole sandbox can be cleared: a fork bomb is faster than any list of processes.
 */
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";

export interface Ended {
  /** All else of the sandbox had to go as well: jobs of earlier commands, what its set-up left running. */
  readonly everything: boolean;
}

/**
 * $1 = the command's process, or the supervisor's: then all that it started, but not itself; $2 = the supervisor's; $3 = the shell's
 * folder, when its first supervisor counts as the beginning. Prints how many live on. Orphans are ours only where the supervisor's parent
 * is outside (0): there, process 1 is the sandbox's, not a machine's.
 */
const script = String.raw`root=$1 own=$2 orphans= born=
stat_of() {
  local line
  IFS= read -r line 2> /dev/null < "/proc/$1/stat" || return
  line=${"$"}{line##*) }
  set -- $line
  state=$1 parent=$2 start=${"$"}{20}
}
stat_of "$own" && [[ $parent == 0 ]] && orphans=1
stat_of "$root" && born=$start
[[ $3 ]] && read -r first 2> /dev/null < "$3/born" && [[ $first =~ ^[0-9]{1,18}$ && $first -lt $born ]] && born=$first
find_all() {
  local entry pid grown=1
  local -A parents=() fresh=() mine=([$root]=1)
  found=()
  for entry in /proc/[0-9]*; do
    pid=${"$"}{entry#/proc/}
    [[ $pid == "$$" || $pid == "$own" || $pid == 1 ]] && continue
    stat_of "$pid" || continue
    [[ $state == Z ]] && continue
    parents[$pid]=$parent
    [[ $orphans && $parent == 1 && $born && $start -ge $born ]] && mine[$pid]=1
  done
  while [[ $grown ]]; do
    grown=
    for pid in "${"$"}{!parents[@]}"; do
      [[ ! ${"$"}{mine[$pid]-} && ${"$"}{mine[${"$"}{parents[$pid]}]-} ]] && mine[$pid]=1 grown=1
    done
  done
  for pid in "${"$"}{!mine[@]}"; do [[ ${"$"}{parents[$pid]-} ]] && found+=("$pid"); done
}
find_all
((${"$"}{#found[@]})) && kill -TERM "${"$"}{found[@]}" 2> /dev/null
exec 9<> <(:)
for ((i = 0; i < 20; i++)); do
  find_all
  ((${"$"}{#found[@]})) || break
  read -r -t 0.05 -u 9
done
for ((i = 0; i < 10; i++)); do
  find_all
  ((${"$"}{#found[@]})) || break
  kill -KILL "${"$"}{found[@]}" 2> /dev/null
  read -r -t 0.02 -u 9
done
find_all
printf '%s\n' "${"$"}{#found[@]}"`;

/** @throws BoundaryError("sandbox") */
export function endCommand(
  sandbox: Sandbox,
  command: { readonly pid: number; readonly supervisorPid: number; readonly user?: string },
  signal: AbortSignal,
): Promise<Ended> {
  return end(sandbox, [String(command.pid), String(command.supervisorPid), ""], command.user, signal);
}

/**
 * All that a shell's commands started and that still runs, those of earlier supervisors of the same shell included.
 * @throws BoundaryError("sandbox")
 */
export function endShell(
  sandbox: Sandbox,
  shell: { readonly supervisorPid: number; readonly folder: string; readonly user?: string },
  signal: AbortSignal,
): Promise<Ended> {
  const pid = String(shell.supervisorPid);
  return end(sandbox, [pid, pid, shell.folder], shell.user, signal);
}

async function end(
  sandbox: Sandbox,
  words: readonly string[],
  user: string | undefined,
  signal: AbortSignal,
): Promise<Ended> {
  const { stdout, exitCode } = await sandbox.exec(
    {
      command: ["bash", "--noprofile", "--norc", "-c", script, "bash", ...words],
      timeoutMs: 5000,
      maxOutputBytes: 1024,
      ...(user !== undefined && { user }),
    },
    signal,
  );
  if (exitCode === 0 && Buffer.from(stdout.head).toString("latin1").trim() === "0") return { everything: false };
  await sandbox.killAll(signal, user);
  return { everything: true };
}

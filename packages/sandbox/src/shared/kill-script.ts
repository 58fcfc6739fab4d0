/**
 * A shell script that ends every process of its own user and says so when they are gone. Invariants: it starts no process (there may
 * be no room for one), and needs no more than a POSIX shell whose `test` knows `-O`, and /proc; where that is missing it ends them
 * all the same, and says so at once. Process 1 and the script's own are spared.
 *
 * A signal to all reaches each, but a process may be seen for a moment longer: the kernel takes down its memory first, and it is
 * buried by its parent. One that is never buried (its parent is another user's) is waited for only so long.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";

/** What it prints when none is left. */
export const killedWord = "rolldeck-killed";
/** What it prints when some did not end: they wait for a device, which no signal breaks off. */
export const stuckWord = "rolldeck-stuck";

/** So many looks into /proc, of which each takes about a millisecond. Asked to end again from time to time: others may have begun. */
export const killScript = `n=0
kill -9 -1 2>/dev/null
while :; do
  left=
  for p in /proc/[0-9]*; do
    [ "$p" != /proc/1 ] && [ "$p" != "/proc/$$" ] && [ -O "$p" ] || continue
    [ $n -lt 200 ] || { IFS= read -r s <"$p/stat" && case $s in *") Z "*) false ;; esac; } || continue
    left=1
    break
  done 2>/dev/null
  [ -z "$left" ] && { echo ${killedWord}; exit 0; }
  n=$((n + 1))
  [ $n -ge 3000 ] && { echo ${stuckWord}; exit 1; }
  [ $((n % 50)) -eq 0 ] && kill -9 -1 2>/dev/null
done`;

export const stuck = (id: string): BoundaryError =>
  new BoundaryError("sandbox", "unavailable", `processes of sandbox ${id} do not end`, { retryable: true });

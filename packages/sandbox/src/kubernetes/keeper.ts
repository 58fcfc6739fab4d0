/**
 * The first process of a pod. Invariants: it forks nothing once it waits, so that `kill -9 -1` of the pod's own user never ends it;
 * it ends by itself when the lease in its file is past, and the pod with it. The agent may write that file: for longer than
 * the pod's own deadline it can't live by that.
 */

/** A volume of the pod's own; the lease is a file of Unix seconds in it. */
export const keeperFolder = "/rolldeck";
export const leaseFile = `${keeperFolder}/lease`;

const script = `
trap : TERM INT HUP
until=$1
mkfifo -m 600 "${keeperFolder}/wait" 2>/dev/null && exec 9<>"${keeperFolder}/wait" || exec 9<&0
while :; do
  printf -v now '%(%s)T' -1
  if [ -r "${leaseFile}" ]; then IFS= read -r said < "${leaseFile}"; case $said in ''|*[!0-9]*) ;; *) until=$said;; esac; fi
  [ "$now" -ge "$until" ] && exit 0
  read -r -t 5 -u 9 _
  [ $? -eq 1 ] && exec sleep "$((until - now))"
done`;

/** @param until Unix seconds */
export const keeperCommand = (until: number): string[] => ["bash", "-c", script, "keeper", String(until)];

/** Writes the lease whole: the keeper never reads half of it. */
export const renewCommand = (until: number): string[] => [
  "bash",
  "-c",
  `printf '%s\\n' "$1" > "${leaseFile}.new" && mv "${leaseFile}.new" "${leaseFile}"`,
  "renew",
  String(until),
];

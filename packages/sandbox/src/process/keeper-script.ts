/**
 * The keeper of one sandbox: a bash on the host that starts it, and ends it when its lease has passed, whatever became of the
 * process that opened it. Only the host writes the lease. When the keeper itself is killed, the sandbox dies with it.
 */

/**
 * $1 = folder of the sandbox, $2 = end of its life (epoch seconds), $3 = cgroup folders, $4 = files that take in a process (both
 * with a colon behind each), then the command that becomes the sandbox. What that prints goes to our stdout.
 */
export const keeperScript = `folder=$1 until=$2 groups=$3 joins=$4
shift 4
umask 022
trap : HUP INT TERM PIPE
(
  while [[ $joins ]]; do
    echo "$BASHPID" > "\${joins%%:*}" || exit 125
    joins=\${joins#*:}
  done
  exec "$@" 9> "$folder/info" 2> "$folder/errors" < /dev/null
) &
child=$!
exec > /dev/null 3<&- 4<&- 5<&- 6<&- 7<&-
exec 9<> <(:)
while kill -0 "$child" 2> /dev/null; do
  lease=0
  read -r lease 2> /dev/null < "$folder/lease" || break
  printf -v now '%(%s)T' -1
  ((now < lease && now < until)) || break
  read -r -t 1 -u 9
done
kill -9 "$child" 2> /dev/null
wait "$child" 2> /dev/null
while [[ $groups ]]; do
  group=\${groups%%:*} groups=\${groups#*:}
  for ((i = 0; i < 100; i++)); do
    [[ -d $group ]] || break
    while read -r pid; do kill -9 "$pid" 2> /dev/null; done < "$group/cgroup.procs"
    rmdir -- "$group" 2> /dev/null && break
    read -r -t 0.05 -u 9
  done
done
rm -rf -- "$folder"`;

/** Process 1 of a sandbox: says that all is in place, then takes in orphans and waits. Nothing in there can end it. */
export const firstProcess: readonly string[] = [
  ...["/bin/bash", "--noprofile", "--norc", "-c"],
  "exec 3<> <(:) 9>&-; trap : TERM INT HUP; echo ready; exec > /dev/null 2>&1; while :; do read -r -u 3 _; done",
  "rolldeck-keeper",
];

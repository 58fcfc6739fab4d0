/**
 * PID 1 of a sandbox and the keeper beside it, so that a sandbox ends by itself when every process that knew of it is gone. PID 1
 * is a shell that only waits: orphans are reaped at once. The keeper waits for the lease to end, and PID 1 ends with it.
 *
 * Invariants: both run under a user that nothing else in the sandbox is, so that not even a sandbox's root (which has no
 * capability) can signal them, trace them or write to their input, and `kill -9 -1` spares them; neither starts a process once it
 * is up, so that a full process table changes nothing; a lease is at most what is left of the sandbox's life.
 *
 * The keeper's input brings lines `lease <seconds>`. Its clock is /proc/uptime, which needs no program. Where the image's shell
 * can't wait with a limit (dash), bash is taken; where there is neither, the lease is the sandbox's whole life.
 */

/** No image is known to have this user. The kernel lets it be without a name. */
export const keeperUid = "60471";
export const keeperUser = `${keeperUid}:${keeperUid}`;

/** Waiting for an input that ended would be no waiting: a terminal nobody has opened is read instead. */
const keep = `now() { read -r up rest </proc/uptime; up=\${up%%.*}; }
now
end=$((up + $1)) last=$((up + $2)) deaf=
while now; [ "$up" -lt "$end" ] && [ "$up" -lt "$last" ]; do
  left=$((end - up))
  [ $((last - up)) -lt "$left" ] && left=$((last - up))
  [ "$left" -gt 300 ] && left=300
  began=$up word= count=
  if [ -n "$deaf" ]; then
    read -r -t "$left" word <&3
  elif read -r -t "$left" word count; then
    case $word:$count in
      lease:|lease:*[!0-9]*) ;;
      lease:*) now; end=$((up + count)) ;;
    esac
  else
    now
    if [ $((up - began)) -lt $((left - 1)) ]; then deaf=1; exec 3<>/dev/ptmx; fi
  fi
done`;

/** A command in the background would have no input of its own accord. */
const boot = `unset BASH_ENV ENV
exec 3<&0
if command -v bash >/dev/null 2>&1; then
  bash -c "$1" rolldeck "$2" "$3" <&3 3<&- &
else
  read -r -t 1 line </dev/null 2>/dev/null
  if [ $? -le 1 ]; then sh -c "$1" rolldeck "$2" "$3" <&3 3<&- & else sleep "$3" & fi
fi
exec 3<&- </dev/null
wait`;

/** Processes that a sandbox has before anything is started in it. */
export const keeperProcesses = 2;

const seconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1000));

/** The program and arguments of PID 1. */
export const keeperCommand = (leaseMs: number, maxLifeMs: number): string[] => [
  ...["/bin/sh", "-c", boot, "rolldeck", keep],
  ...[String(seconds(leaseMs)), String(seconds(maxLifeMs))],
];

/** What its input is told. */
export const leaseLine = (leaseMs: number): string => `lease ${seconds(leaseMs)}\n`;

/**
 * The two bash programs behind the shell tools. The supervisor runs as long as the worker talks to it: it reads commands from stdin,
 * each ended by a NUL, runs each in a fresh bash and says on stdout how it ended. The runner is what that fresh bash begins with:
 * it takes up the state of the last command, runs this one, and leaves its own state behind.
 *
 * Invariants:
 * - What a command prints comes to our stdout through a pipe of its own, and the mark that ends it goes through the same pipe: it
 *   stands behind all that the command printed, and what a background job prints later never reaches a later command's output.
 * - The state is one file, renamed into place when it is whole: whoever takes over a sandbox goes on with it, and a command that
 *   is killed leaves the one before.
 * - Nothing but builtins decides; programs are called for what no builtin can do (cat, mkdir, mkfifo, mv, rm).
 *
 * To the supervisor: `a` (all of the last output has come), `r` (forget the state), `c` + 32 hex digits + mode + command, where the
 * mode is `n` (stdin is empty), `i` (stdin is a pipe that is kept open), `s` (as `n`, with no state). From it, on stderr: `ready
 * PID FOLDER`, `run MARK PID`; on stdout, before the output: a record separator, `MARK+` and a line end; behind it: a record separator, `MARK EXITCODE
 * KEPT FOLDER` and a line end.
 */

/** Variables that bash itself keeps, and ours. */
const ownNames =
  "__rd_*|BASH|BASH_ALIASES|BASH_ARG*|BASH_CMDS|BASH_COMMAND|BASH_EXECUTION_STRING|BASH_LINENO|BASH_MONOSECONDS|BASH_REMATCH|" +
  "BASH_SOURCE|BASH_SUBSHELL|BASH_TRAPSIG|BASH_VERS*|BASHOPTS|BASHPID|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|" +
  "LINENO|OPTERR|OPTIND|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_";

/** All variables' names, by a builtin's means alone. */
const allNames = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"]
  .map((letter) => `"\${!${letter}@}"`)
  .join(" ");

const listNames = `__rd_v=()
for __rd_i in ${allNames}; do case $__rd_i in ${ownNames}) ;; *) __rd_v+=("$__rd_i") ;; esac; done`;

/** Leaves the shell's state in the folder; `__rd_n` is set when the command ran to its end and did not leave by `exit`. */
const saveState = String.raw`__rd_o=$SHELLOPTS
\builtin set +exvuCT
__rd_k=1
\builtin shopt -p >| "$__rd_d/state.new"
\builtin shopt -u expand_aliases
${listNames}
\builtin declare -p "${"$"}{__rd_v[@]}" >> "$__rd_d/state.new" || __rd_k=
\builtin declare -f >> "$__rd_d/state.new" || __rd_k=
\builtin declare -Fx >> "$__rd_d/state.new" || __rd_k=
\builtin alias -p >> "$__rd_d/state.new" || __rd_k=
\builtin umask -p >> "$__rd_d/state.new" || __rd_k=
__rd_s= __rd_l=$__rd_o:
while [[ $__rd_l ]]; do
  __rd_i=${"$"}{__rd_l%%:*} __rd_l=${"$"}{__rd_l#*:}
  case $__rd_i in
    braceexpand | hashall | interactive-comments) ;;
    # A shell that a failure ended would be followed by one without the option.
    errexit) [[ ${"$"}{__rd_n-} ]] && __rd_s+=" -o errexit" ;;
    *) __rd_s+=" -o $__rd_i" ;;
  esac
done
for __rd_i in braceexpand hashall interactive-comments; do
  [[ :$__rd_o: == *:$__rd_i:* ]] || __rd_s+=" +o $__rd_i"
done
[[ $__rd_s ]] && __rd_s="\builtin set$__rd_s; "
\builtin printf '__rd_p=%q\n__rd_q=%q\n__rd_s=%q\n' "$PWD" "${"$"}{OLDPWD-}" "$__rd_s" >> "$__rd_d/state.new" || __rd_k=
[[ $__rd_k ]] && \builtin printf '%s' "$PWD" >| "$__rd_d/ready"`;

const prepare = String.raw`\builtin declare +x __rd_a __rd_z __rd_save __rd_c __rd_d __rd_m
__rd_s=
if [[ ! $__rd_c && -r $__rd_d/large ]]; then IFS= read -r -d '' __rd_c < "$__rd_d/large"; fi
if [[ $__rd_m ]]; then
  \builtin shopt -s expand_aliases
  if [[ -r $__rd_d/state ]]; then
    ${listNames}
    \builtin unset -v "${"$"}{__rd_v[@]}" 2> /dev/null
    \builtin . "$__rd_d/state" 2> /dev/null
    \builtin cd -- "$__rd_p" && [[ $__rd_q ]] && OLDPWD=$__rd_q
  fi
  \builtin trap '{ __rd_e=$?; [[ ${"$"}{__rd_n-} ]] || \builtin eval "$__rd_save"; } 2> /dev/null' EXIT
fi`;

const leave = String.raw`__rd_e=$?
if [[ $__rd_m ]]; then __rd_n=1; \builtin eval "$__rd_save"; fi
\builtin exit "$__rd_e"`;

/** On one line, so that the command's own lines count from 1. */
const runner = String.raw`eval "$__rd_a"; eval "$__rd_s$__rd_c"; { \builtin eval "$__rd_z"; } 2> /dev/null`;

/** Of a command in the environment, in characters of up to four bytes: a string of it is at most 128 KiB long. */
const largeCommand = 30_000;

const supervisor = String.raw`__rd_a=$ROLLDECK_PREPARE __rd_save=$ROLLDECK_SAVE __rd_z=$ROLLDECK_LEAVE
unset -v ROLLDECK_SHELL ROLLDECK_PREPARE ROLLDECK_SAVE ROLLDECK_LEAVE
exec 3>&2 2>/dev/null
# Commands get process groups of their own, and an interrupt reaches them.
set -m
trap : HUP INT TERM
trap 'exec 9>&-' USR1

place() {
  local base kind
  for kind in old new; do
    for base in /var/tmp /tmp "${"$"}{HOME:-/var/tmp}" /dev/shm; do
      dir=$base/.rolldeck-shell-$UID
      if [[ -L $dir ]]; then continue; fi
      if [[ ! -d $dir ]]; then [[ $kind == new ]] && mkdir -m 700 -- "$dir" || continue; fi
      [[ -O $dir && -w $dir ]] || continue
      [[ -p $dir/out ]] || mkfifo -m 600 -- "$dir/out" || continue
      [[ -p $dir/in ]] || mkfifo -m 600 -- "$dir/in" || continue
      return 0
    done
  done
  return 1
}

# A supervisor that lost its worker, and the command that it was in the middle of.
succeed() {
  local old run words
  left=
  read -r old run < "$dir/pid" || return
  mapfile -d '' -t words < "/proc/$old/cmdline" || return
  [[ ${"$"}{words[5]-} == rolldeck-shell && $old != "$$" ]] || return
  [[ $run ]] && kill -9 -- "-$run" && left=left
  kill -9 "$old"
}

run_command() {
  local mark=${"$"}{line:1:32} mode=${"$"}{line:33:1} cmd=${"$"}{line:34} keep=1 code pid
  [[ -p $dir/out && -p $dir/in ]] || place
  rm=; [[ -e $dir/ready || -e $dir/large ]] && rm -f -- "$dir/ready" "$dir/large"
  [[ $mode == s ]] && keep=
  if ((${"$"}{#cmd} > ${largeCommand})); then printf '%s' "$cmd" >| "$dir/large"; cmd=; fi
  exec 5<> "$dir/out" && exec 6< "$dir/out" 7> "$dir/out" 5>&-
  if [[ $mode == i ]]; then exec 5<> "$dir/in" && exec 8< "$dir/in" 9> "$dir/in" 5>&-; else exec 8< /dev/null; fi
  printf '\036%s+\n' "$mark"
  cat <&6 3>&- 6<&- 7>&- 8<&- 9>&- &
  cat=$!
  (
    [[ -e $dir/state && $keep ]] && unset -v BASH_ENV
    __rd_a=$__rd_a __rd_z=$__rd_z __rd_save=$__rd_save __rd_c=$cmd __rd_d=$dir __rd_m=$keep \
      exec bash --noprofile --norc -c '${runner}' bash
  ) <&8 >&7 2>&1 3>&- 6<&- 7>&- 8<&- 9>&- &
  pid=$!
  exec 8<&-
  printf 'run %s %s\n' "$mark" "$pid" >&3
  printf '%s %s\n' "$$" "$pid" >| "$dir/pid"
  while :; do
    wait "$pid"
    code=$?
    kill -0 "$pid" || break
    # What stopped itself would be waited for without end.
    kill -CONT -- "-$pid"
  done
  # What it left in the background is nobody's to end when another supervisor takes over.
  printf '%s\n' "$$" >| "$dir/pid"
  local kept=1 at=
  if [[ $keep ]]; then
    if [[ -e $dir/ready ]]; then IFS= read -r -d '' at < "$dir/ready"; mv -f -- "$dir/state.new" "$dir/state"; else kept=0; fi
  fi
  kill -0 "$cat" || { cat <&6 3>&- 6<&- 7>&- 9>&- & cat=$!; }
  printf '\036%s %s %s %q\n' "$mark" "$code" "$kept" "$at" >&7
  exec 7>&- 9>&-
  reading=1
}

# Our end of the pipe: who still holds the other one goes on writing, to nobody.
release() {
  local byte status
  [[ $reading ]] || return
  reading=
  IFS= read -r -t 0.02 -N 1 -u 6 byte
  status=$?
  if ((status == 0 || status > 128)); then
    kill -9 "$cat"
    wait "$cat"
    cat <&6 3>&- 6<&- > /dev/null &
    disown "$!"
    rm -f -- "$dir/out"
    mkfifo -m 600 -- "$dir/out"
  else
    wait "$cat"
  fi
  exec 6<&-
}

# When the first supervisor of this shell began: what the shell started began later.
note_birth() {
  local line
  [[ -e $dir/born ]] && return
  IFS= read -r line < /proc/self/stat || return
  set -- ${"$"}{line##*) }
  printf '%s\n' "${"$"}{20}" >| "$dir/born"
}

if ! place; then printf 'nowhere\n' >&3; exit 1; fi
note_birth
succeed
# Who still holds the pipes of an earlier supervisor's command, or reads them, goes on with those.
rm -f -- "$dir/out" "$dir/in"
mkfifo -m 600 -- "$dir/out" "$dir/in"
reading=
[[ -e $dir/state ]] && known=known || known=new
printf 'ready %s %s %s %s\n' "$$" "$known" "${"$"}{left:-clean}" "$dir" >&3
while IFS= read -r -d '' line; do
  case $line in
    a) release ;;
    r) rm -f -- "$dir/state" "$dir/state.new" "$dir/ready" ;;
    c*) release; run_command ;;
  esac
done`;

/** What starts the supervisor: short, since the agent sees it in its list of processes. */
export const supervisorCommand: readonly string[] = [
  ...["bash", "--noprofile", "--norc", "-c"],
  ...['eval "$ROLLDECK_SHELL"', "rolldeck-shell"],
];
export const supervisorEnvironment: Readonly<Record<string, string>> = {
  ROLLDECK_SHELL: supervisor,
  ROLLDECK_PREPARE: prepare,
  ROLLDECK_SAVE: saveState,
  ROLLDECK_LEAVE: leave,
};

/** How a shell is started in a sandbox and what ends it again; the end needs `grep` and `/proc`, too. */

/** In the environment of a shell and of all it starts, so that they are found again. */
const markName = "ROLLDECK_SHELL";

const startScript = `if command -v bash >/dev/null 2>&1; then exec bash -i; fi; exec sh -i`;

/**
 * Closing a terminal's stream ends nothing in a container: what bears the mark is told to hang up and, where it does not, killed. The
 * mark is random, so whatever has it in its environment is of this shell.
 */
const endScript = `
marked() { grep -ls "$1" /proc/[0-9]*/environ 2>/dev/null; }
each() { for place in $(marked "$2"); do pid=\${place#/proc/}; kill "-$1" "\${pid%/environ}" 2>/dev/null; done; }
each HUP "$1"
for _ in 1 2 3 4 5; do [ -z "$(marked "$1")" ] && exit 0; sleep 0.2 2>/dev/null || sleep 1; done
each KILL "$1"`;

export const startShell = (mark: string) => ({
  command: ["/bin/sh", "-c", startScript],
  environment: { TERM: "xterm-256color", COLORTERM: "truecolor", [markName]: mark },
});
export const endShell = (mark: string) => ({ command: ["/bin/sh", "-c", endScript, "sh", mark] });

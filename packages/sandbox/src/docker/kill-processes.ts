/**
 * Ends every process of one user in a container. The daemon has no way to end a command that was started in a container, and
 * ending the one it knows would spare what left its group; a signal to all of the user's processes at once spares none, however
 * they were started and even at the limit of processes. The keeper is another user's and lives.
 */
import { killedWord, killScript, stuck, stuckWord } from "../shared/kill-script.ts";
import { within } from "../shared/waiting.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked, containerMs } from "./daemon-trouble.ts";

const answerMs = 15_000;
/**
 * Processes that a container may have more than its limit for a moment, try by try: one that is full of processes which start
 * others may not even start the shell that ends them.
 */
const tries = [0, 0, 0, 64, 256];

/** Asks them to end; those that can't hear it are not asked again. @throws BoundaryError("sandbox") */
export async function askProcessesToEnd(scene: ContainerScene, user: string): Promise<void> {
  await sendSignal(scene, user, askScript);
}

/**
 * Where a shell can't be started for want of room, the container is started anew: its processes and memory file systems are gone
 * then, its files stay, and its life begins again. Where there is no shell any more, it would not start either: then what runs
 * goes on until the sandbox is closed.
 * @throws BoundaryError("sandbox"): `gone`, or `unavailable` when the daemon did not do it
 */
export function killProcesses(scene: ContainerScene, user: string): Promise<void> {
  return scene.endings.take(() => killAll(scene, user));
}

async function killAll(scene: ContainerScene, user: string): Promise<void> {
  if (await killWithShell(scene, user)) return;
  await asked("ending processes", scene.container.restart({ t: 0 }), { limitMs: containerMs });
}

async function killWithShell(scene: ContainerScene, user: string): Promise<boolean> {
  let raised = false;
  try {
    for (const more of tries) {
      if (more > 0) {
        raised = true;
        await asked("ending processes", scene.container.update({ PidsLimit: scene.pids + more }));
      }
      if ((await sendSignal(scene, user, killScript)) !== "no room") return true;
    }
    return false;
  } finally {
    if (raised) await asked("ending processes", scene.container.update({ PidsLimit: scene.pids }));
  }
}

/** Its own word that it got so far: a shell that could not be started ends with numbers of all kinds. */
const askedWord = "rolldeck-asked";
const askScript = `kill -TERM -1 2>/dev/null; echo ${askedWord}`;

/** `no shell`: the image's is gone, or is no program any more. */
async function sendSignal(
  scene: ContainerScene,
  user: string,
  script: string,
): Promise<"sent" | "no room" | "no shell"> {
  const what = "ending processes";
  const work = (async () => {
    const exec = await asked(
      what,
      scene.container.exec({
        Cmd: ["/bin/sh", "-c", script],
        AttachStdout: true,
        // A shell whose loader is gone is told there only.
        AttachStderr: true,
        User: user,
        WorkingDir: "/",
      }),
    );
    const stream = await asked(what, exec.start({ Detach: false }), { late: (unwanted) => unwanted.destroy() });
    let said = "";
    await new Promise<void>((resolve) => {
      stream.on("data", (bytes: Buffer) => {
        said = (said + bytes.toString("latin1")).slice(-1000);
      });
      stream.on("end", resolve).on("close", resolve).on("error", resolve);
    });
    if ([askedWord, killedWord].some((word) => said.includes(word))) return "sent";
    if (said.includes(stuckWord)) throw stuck(scene.id);
    return /executable file not found|no such file or directory|permission denied|exec format/i.test(said)
      ? "no shell"
      : "no room";
  })();
  return within(work, answerMs, what);
}

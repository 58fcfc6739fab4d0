/**
 * Ends every process of one user in a container. The daemon has no way to end a command that was started in a container, and
 * ending the one it knows would spare what left its group; a signal to all of the user's processes at once spares none, however
 * they were started and even at the limit of processes. The keeper is another user's and lives.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { within } from "../shared/waiting.ts";
import { ExecAnswer } from "./answers.ts";
import type { ContainerScene } from "./container-scene.ts";
import { asked } from "./daemon-trouble.ts";

const answerMs = 15_000;
/** For a moment, where a container may not even start the shell that does it. */
const spareprocesses = 16;

/** @throws BoundaryError("sandbox"): `gone`, or `unavailable` when the daemon did not do it */
export async function killProcesses(scene: ContainerScene, user: string, signal: "TERM" | "KILL"): Promise<void> {
  if (await sendSignal(scene, user, signal)) return;
  await asked("ending processes", scene.container.update({ PidsLimit: scene.pids + spareprocesses }));
  const sent = await sendSignal(scene, user, signal);
  await asked("ending processes", scene.container.update({ PidsLimit: scene.pids }));
  if (!sent)
    throw new BoundaryError("sandbox", "unavailable", `no signal reached the processes of sandbox ${scene.id}`);
}

/** False when the shell could not be started. */
async function sendSignal(scene: ContainerScene, user: string, signal: string): Promise<boolean> {
  const what = "ending processes";
  const work = (async () => {
    const exec = await asked(
      what,
      scene.container.exec({ Cmd: ["/bin/sh", "-c", `kill -${signal} -1`], User: user, WorkingDir: "/" }),
    );
    const stream = await asked(what, exec.start({ Detach: false }));
    await new Promise<void>((resolve) => stream.on("end", resolve).on("close", resolve).on("error", resolve).resume());
    const { ExitCode } = ExecAnswer.parse(await asked(what, exec.inspect()));
    // 1: there was no process to send it to.
    return ExitCode === 0 || ExitCode === 1;
  })();
  return within(work, answerMs, what);
}

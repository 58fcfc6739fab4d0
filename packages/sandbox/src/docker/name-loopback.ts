/** Names for the loopback in containers without a network: the daemon gives them none, and few images bring any. */
import { Readable } from "node:stream";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import { PathAnswer, StatAnswer } from "./answers.ts";
import { asked, heard } from "./daemon-trouble.ts";

const hosts = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";

/** Whether the image's own hosts file says anything. */
export const namesLoopback = async (container: Docker.Container): Promise<boolean> =>
  (await sizeOf(container, "/etc/hosts")) > 0;

/** @throws BoundaryError("sandbox") */
export async function nameLoopback(container: Docker.Container): Promise<void> {
  const files = pack();
  files.entry({ name: "etc/hosts", mode: 0o644 }, hosts);
  files.finalize();
  await asked("naming the loopback", container.putArchive(Readable.from(files), { path: "/" }));
}

async function sizeOf(container: Docker.Container, path: string): Promise<number> {
  try {
    const answer: unknown = await heard("looking into a sandbox", container.infoArchive({ path }));
    // Its answer is a stream without content: left alone, its connection would be held for ever.
    if (answer instanceof Readable) answer.destroy();
    const stat = PathAnswer.parse(answer).headers["x-docker-container-path-stat"];
    return StatAnswer.parse(JSON.parse(Buffer.from(stat, "base64").toString())).size;
  } catch {
    return 0;
  }
}

/** Images of a Docker daemon as `rolldeck task build` makes them: nothing is pulled, nothing reaches a network while building. */
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { BoundaryError } from "@rolldeck/contracts/errors";
import Docker from "dockerode";
import { z } from "zod";

/** One line of what the daemon says of its progress. */
const Progress = z.object({ stream: z.string().optional(), error: z.string().optional() });

export class DockerImages {
  readonly #docker: Docker;

  /** @param socket path of the daemon's socket */
  constructor(socket: string) {
    this.#docker = new Docker({ socketPath: socket });
  }

  /** The image's id, null when the daemon has none of this name. @throws BoundaryError("sandbox") when it does not answer */
  async idOf(name: string): Promise<string | null> {
    try {
      return (await this.#docker.getImage(name).inspect()).Id;
    } catch (cause) {
      if (cause instanceof Error && "statusCode" in cause && cause.statusCode === 404) return null;
      throw new BoundaryError("sandbox", "unavailable", `the Docker daemon does not answer: ${String(cause)}`, {
        cause,
      });
    }
  }

  /** @param archive path of a tar of a whole file system */
  async importArchive(archive: string, name: string): Promise<void> {
    const [repo = name, tag = "latest"] = name.split(":");
    await this.#said(await this.#docker.importImage(createReadStream(archive), { repo, tag }));
  }

  /** @param folder the build's context, with its Dockerfile */
  async build(folder: string, name: string, signal: AbortSignal): Promise<void> {
    const tar = spawn("tar", ["-C", folder, "-cf", "-", "."], { stdio: ["ignore", "pipe", "ignore"], signal });
    tar.once("error", (error) => tar.stdout.destroy(error));
    const options = { t: name, networkmode: "none", forcerm: true, pull: false, abortSignal: signal };
    await this.#said(await this.#docker.buildImage(tar.stdout, options));
  }

  /** Reads the daemon's answer to its end. @throws BoundaryError("sandbox") with what it says went wrong */
  async #said(answer: NodeJS.ReadableStream): Promise<void> {
    const lines = await new Promise<unknown[]>((resolve, reject) => {
      this.#docker.modem.followProgress(answer, (error, all) => (error === null ? resolve(all) : reject(error)));
    });
    for (const line of lines) {
      const { error } = Progress.parse(line);
      if (error !== undefined) throw new BoundaryError("sandbox", "no_image", `the image could not be made: ${error}`);
    }
  }
}

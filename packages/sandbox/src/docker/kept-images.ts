/**
 * Images that Rolldeck made in the daemon: built for tasks, or kept of sandboxes. Each has a lease that every use renews; the sweep
 * removes those past theirs. Invariants: an image of another deployment is never removed, nor one that a container is made of
 * (also of one that ended), nor one kept of a sandbox that is there, nor a name that people gave it.
 *
 * The lease is the time at which the image was last given its name: the daemon keeps it, for all processes of all deployments, and
 * giving it the same name again renews it.
 */
import type Docker from "dockerode";
import { ImageAnswer, ImageListAnswer, ListAnswer } from "./answers.ts";
import { labels } from "./container-options.ts";
import { asked, heard, statusOf } from "./daemon-trouble.ts";

export const buildRepository = "rolldeck-build";
export const snapshotRepository = "rolldeck-snapshot";
const repositories = [buildRepository, snapshotRepository];
/** Labels of its images; those of a sandbox that was kept stay beside them. */
export const imageLabels = (deployment: string): Record<string, string> => ({
  [labels.deployment]: deployment,
  [labels.role]: "image",
});

/** Less often than this the same image is not renewed. */
const touchEveryMs = 600_000;
const maxRemembered = 10_000;
/** Older daemons, and some stores, have no time of the last name: then it is this or less. */
const noTime = Date.parse("1971-01-01T00:00:00Z");

export interface KeptImagesOptions {
  readonly docker: Docker;
  readonly deployment: string;
  /** How long an image stays that nobody uses. */
  readonly keepMs: number;
  /** Milliseconds of the wall clock, which the daemon's is taken to be. */
  readonly now: () => number;
}

export class KeptImages {
  readonly #options: KeptImagesOptions;
  readonly #touchedMs = new Map<string, number>();

  constructor(options: KeptImagesOptions) {
    this.#options = options;
  }

  /** Renews the lease of an image of ours, whichever deployment made it; others are left alone. @throws BoundaryError("sandbox") */
  async touch(name: string): Promise<void> {
    const [repo = "", tag = ""] = name.split(":");
    const now = this.#options.now();
    if (!repositories.includes(repo) || now - (this.#touchedMs.get(name) ?? 0) < touchEveryMs) return;
    await asked(`using image ${name}`, this.#options.docker.getImage(name).tag({ repo, tag }));
    if (this.#touchedMs.size >= maxRemembered) this.#touchedMs.clear();
    this.#touchedMs.set(name, now);
  }

  /** Removes what is past its lease. @returns their names @throws BoundaryError("sandbox") */
  async sweep(): Promise<readonly string[]> {
    const { docker, deployment, keepMs, now } = this.#options;
    const what = "looking for images that nobody uses";
    const filters = { label: [`${labels.deployment}=${deployment}`] };
    const images = ImageListAnswer.parse(await asked(what, docker.listImages({ filters })));
    if (images.length === 0) return [];
    // After the images: one that is used by then is seen here.
    const containers = ListAnswer.parse(await asked(what, docker.listContainers({ all: true })));
    const used = new Set(containers.map(({ ImageID }) => ImageID));
    const there = new Set(containers.map(({ Labels }) => Labels?.[labels.sandbox]));
    const removed: string[] = [];
    for (const { Id, RepoTags, Labels } of images) {
      const sandbox = Labels?.[labels.sandbox];
      if (used.has(Id) || (sandbox !== undefined && there.has(sandbox))) continue;
      if (now() - (await this.#lastUsedMs(Id)) <= keepMs) continue;
      const tags = (RepoTags ?? []).filter((tag) => tag !== "<none>:<none>");
      const ours = tags.filter((tag) => repositories.some((repo) => tag.startsWith(`${repo}:`)));
      for (const name of tags.length === 0 ? [Id] : ours) if (await this.#remove(name)) removed.push(name);
    }
    return removed;
  }

  async #lastUsedMs(id: string): Promise<number> {
    try {
      const inspection = this.#options.docker.getImage(id).inspect();
      const { Created, Metadata } = ImageAnswer.parse(await heard("looking at an image", inspection));
      const times = [Metadata?.LastTagTime, Created].map((time) => Date.parse(time ?? "")).filter((ms) => ms > noTime);
      // One of no known age is never old.
      return times.length === 0 ? this.#options.now() : Math.max(...times);
    } catch (error) {
      if (statusOf(error) === 404) return this.#options.now();
      throw error;
    }
  }

  /** Never by force: the daemon keeps what a container was made of since we looked. */
  async #remove(name: string): Promise<boolean> {
    try {
      await heard(`removing image ${name}`, this.#options.docker.getImage(name).remove(), { limitMs: removalMs });
      return true;
    } catch (error) {
      const status = statusOf(error);
      if (status === 404 || status === 409) return false;
      throw error;
    }
  }
}

/** Of many gigabytes. */
const removalMs = 300_000;

/** The container image of a row: its own where it names one, else by the convention of its data set. */

export interface ImageOptions {
  /** Put before every name that a row or convention gives. */
  readonly imagePrefix: string;
  /** Null = the name itself. */
  readonly imageTemplate: string | null;
}

interface Named {
  readonly kind: "swe-bench" | "swe-gym" | "swe-smith" | "r2e-gym";
  readonly instanceId: string;
  readonly repo: string;
  readonly version: string | null;
  readonly image: string | null;
}

/** A name as registries have it: host and port, path, tag, digest. */
const imagePattern =
  /^[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/u;

export const isImageName = (name: string): boolean => name.length <= 400 && imagePattern.test(name);

/** Docker's names are in small letters and have no two underscores in a row. */
const slug = (instanceId: string): string => instanceId.replaceAll("__", "_1776_").toLowerCase();

/** @returns a name that may not be one: check it */
export function imageOf(row: Named, { imagePrefix, imageTemplate }: ImageOptions): string {
  const image = own(row);
  if (imageTemplate === null) return imagePrefix + image;
  const words: Readonly<Record<string, string>> = {
    image,
    id: slug(row.instanceId),
    instance_id: row.instanceId,
    repo: row.repo.replaceAll("/", "__").toLowerCase(),
    version: row.version ?? "",
  };
  return imagePrefix + imageTemplate.replaceAll(/\{([a-z_]+)\}/gu, (whole, word: string) => words[word] ?? whole);
}

/** Places of an image's template. */
export const templateWords = ["image", "id", "instance_id", "repo", "version"] as const;

function own({ kind, instanceId, image }: Named): string {
  if (kind === "swe-smith" && image !== null) {
    const name = image.replaceAll("__", "_1776_").toLowerCase();
    return name.includes("/") ? name : `jyangballin/${name}`;
  }
  if (image !== null) return image;
  if (kind === "swe-gym") return `xingyaoww/sweb.eval.x86_64.${instanceId.replaceAll("__", "_s_").toLowerCase()}`;
  return `swebench/sweb.eval.x86_64.${slug(instanceId)}:latest`;
}

/** Images of these families keep Python in a conda environment that a shell has to enter. */
export const hasConda = (image: string): boolean => /sweb\.eval|swesmith/u.test(image);

/** Images that one host has and no registry: a snapshot's name says where it is, so that no memory of it is needed. */
import type { WireImage, WireRecipe, WireSpec } from "@rolldeck/sandbox/remote/wire-spec";
import { memoryOf } from "./directory.ts";
import type { Needs } from "./placement.ts";

const pattern = /^rolldeck-host\/([a-z0-9]{8,40})\/(.+)$/;

export const hostImageName = (hostId: string, name: string): string => `rolldeck-host/${hostId}/${name}`;

/** Null for one that any host may have. */
export function hostImage(image: WireImage | null): { readonly hostId: string; readonly name: string } | null {
  if (image?.kind !== "name") return null;
  const [, hostId, name] = pattern.exec(image.name) ?? [];
  return hostId === undefined || name === undefined ? null : { hostId, name };
}

/** As its host knows it. */
export function localImage(image: WireImage): WireImage {
  const there = hostImage(image);
  return there === null ? image : { kind: "name", name: there.name };
}

export const localSpec = (spec: WireSpec): WireSpec => ({
  ...spec,
  image: spec.image === null ? null : localImage(spec.image),
});

/** What a host must have for it. */
export const needsOf = (recipe: WireRecipe): Needs => ({
  memoryMb: memoryOf(recipe),
  onlyHost: hostImage(recipe.image)?.hostId ?? null,
  withImage: recipe.image !== null,
});

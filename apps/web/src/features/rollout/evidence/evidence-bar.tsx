"use client";
import type { ArtifactInfo } from "@rolldeck/contracts/api/artifacts";
import type { JSX, ReactNode } from "react";
import { buttonClass } from "../../../design/button.tsx";
import { EmptyState } from "../../../design/empty-state.tsx";
import { ErrorBanner } from "../../../design/error-banner.tsx";
import { Icon } from "../../../design/icon.tsx";
import { Skeleton } from "../../../design/skeleton.tsx";
import { formatBytes } from "../../../format/numbers.ts";
import { type ArtifactPlace, artifactHref, useArtifactText } from "./use-artifact-text.ts";

/** The tools above a piece of evidence. */
export function EvidenceBar({ children }: { children: ReactNode }): JSX.Element {
  return (
    <div className="flex min-h-10 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-g3 px-4 py-1">
      {children}
    </div>
  );
}

export function DownloadLink({ place, info }: { place: ArtifactPlace; info: ArtifactInfo }): JSX.Element {
  return (
    <a
      href={artifactHref(place, info)}
      download={info.name}
      className={buttonClass("quiet", "h-7! px-2!")}
      title={`${info.mediaType}, exact bytes`}
    >
      <Icon name="download" size={14} />
      {info.name}
      <span className="num text-xs text-g7">{formatBytes(info.bytes)}</span>
    </a>
  );
}

/** Said wherever less is kept than there was. */
export function CutNotice({ info }: { info: ArtifactInfo }): JSX.Element | null {
  if (info.storedBytes >= info.bytes) return null;
  return (
    <p role="status" className="shrink-0 bg-paused-soft px-4 py-1 text-sm text-paused">
      {formatBytes(info.storedBytes)} of {formatBytes(info.bytes)} are kept: its beginning and its end. What lay between
      is gone.
    </p>
  );
}

/** Loads an artifact and shows it, or why it can't be shown. */
export function WithArtifact({
  place,
  info,
  doing,
  empty,
  children,
}: {
  place: ArtifactPlace;
  info: ArtifactInfo | undefined;
  /** "load the patch" */
  doing: string;
  /** Where there is none. */
  empty: ReactNode;
  children(text: string, info: ArtifactInfo): ReactNode;
}): JSX.Element {
  const query = useArtifactText(place, info);
  if (!info) return <>{empty}</>;
  if (query.data !== undefined) return <>{children(query.data, info)}</>;
  if (query.error)
    return (
      <div className="p-4">
        <ErrorBanner error={query.error} doing={doing} onRetry={() => void query.refetch()} />
      </div>
    );
  return (
    <div className="flex flex-col gap-2 p-4" aria-busy="true">
      <Skeleton className="h-7 w-1/3" />
      <Skeleton className="h-[50vh]" />
    </div>
  );
}

export function NoEvidence({
  title,
  live,
  children,
}: {
  /** "No patch"; of a rollout that goes on it is not there yet. */
  title: string;
  live: boolean;
  children: ReactNode;
}): JSX.Element {
  return (
    <EmptyState title={live ? `${title} yet` : title}>
      <p>{live ? "The rollout goes on; this fills by itself." : children}</p>
    </EmptyState>
  );
}

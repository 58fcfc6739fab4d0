"use client";
/** The form over the text: values, what the server says of each, names it offers, and the backend's limits. */
import type { Catalogue } from "@rolldeck/contracts/api/system";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import type { FormState, Issue } from "./config-field.tsx";
import { type ParsedText, setInText, valueAt } from "./config-text.ts";
import { fieldNotes, fieldOptions } from "./field-options.ts";

const byPath = (issues: readonly Issue[]): Map<string, Issue[]> => {
  const map = new Map<string, Issue[]>();
  for (const issue of issues) map.set(issue.path, [...(map.get(issue.path) ?? []), issue]);
  return map;
};

/** What the server says of a config, and the limits of its backend, by path. Pure. */
export function formOver(said: {
  readonly issues: readonly Issue[];
  readonly warnings: readonly Issue[];
  readonly catalogue: Pick<Catalogue, "backends"> | undefined;
  readonly backendName: unknown;
}): Pick<FormState, "issues" | "warnings" | "limits"> {
  const backend = said.catalogue?.backends.find(({ name }) => name === said.backendName);
  return {
    issues: byPath(said.issues),
    warnings: byPath(said.warnings),
    limits: new Map(backend?.unsupported.map(({ path, reason }) => [path, reason]) ?? []),
  };
}

export function useConfigForm(
  text: string,
  parsed: ParsedText,
  setText: (text: string) => void,
  said: { readonly issues: readonly Issue[]; readonly warnings: readonly Issue[] },
) {
  const trpc = useTRPC();
  const { data: catalogue } = useQuery(trpc.catalogue.get.queryOptions(undefined, { staleTime: 60_000 }));
  const backendName = valueAt(parsed.value, ["backend", "name"]) ?? "gpu-worker";
  const options = useMemo(() => fieldOptions(catalogue, backendName), [catalogue, backendName]);
  const notes = useMemo(() => fieldNotes(catalogue), [catalogue]);
  const form: FormState = {
    value: parsed.value,
    set: (path, value) => setText(setInText(text, path, value)),
    ...formOver({ ...said, catalogue, backendName }),
    locked: parsed.error !== null,
    options,
    notes,
    unset: "default",
  };
  return { form, catalogue };
}

"use client";
/** The form over the text: values, what the server says of each, names it offers, and the backend's limits. */
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
  const limits = useMemo(() => {
    const backend = catalogue?.backends.find((each) => each.name === backendName);
    return new Map(backend?.unsupported.map((each) => [each.path, each.reason]) ?? []);
  }, [catalogue, backendName]);
  const form: FormState = {
    value: parsed.value,
    set: (path, value) => setText(setInText(text, path, value)),
    issues: byPath(said.issues),
    warnings: byPath(said.warnings),
    locked: parsed.error !== null,
    options,
    limits,
    notes,
  };
  return { form, catalogue };
}

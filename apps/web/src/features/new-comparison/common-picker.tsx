"use client";
import { presets } from "@rolldeck/contracts/presets";
import { useQuery } from "@tanstack/react-query";
import Link from "next/link";
import { type JSX, useId } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { CodeText } from "../../design/code-text.tsx";
import { inputClass } from "../new-run/input-props.ts";
import type { CommonConfig } from "./use-common-config.ts";

export type CommonSource = { readonly preset: string } | { readonly from: string };

/** A preset or one of the newest runs, by one list. */
export function CommonPicker({
  source,
  common,
  onChoose,
}: {
  source: CommonSource;
  common: CommonConfig | null;
  onChoose(source: CommonSource): void;
}): JSX.Element {
  const id = useId();
  const trpc = useTRPC();
  const runs = useQuery(trpc.runs.list.queryOptions({ limit: 30 }, { staleTime: 15_000 }));
  const items = runs.data?.items ?? [];
  const value = "from" in source ? `from ${source.from}` : `preset ${source.preset}`;
  const choose = (next: string) => {
    const [kind, name = ""] = next.split(" ");
    onChoose(kind === "from" ? { from: name } : { preset: name });
  };
  const isListed = !("from" in source) || items.some(({ runId }) => runId === source.from);
  const edit = "from" in source ? `/runs/new?from=${source.from}` : `/runs/new?preset=${source.preset}`;
  return (
    <div data-field="config">
      <label htmlFor={id} className="font-medium">
        Common config
      </label>
      <select id={id} className={inputClass} value={value} onChange={(event) => choose(event.target.value)}>
        {!isListed && <option value={value}>{common?.title ?? "a run"}</option>}
        <optgroup label="Presets">
          {Object.entries(presets).map(([name, { title }]) => (
            <option key={name} value={`preset ${name}`}>
              {title}
            </option>
          ))}
        </optgroup>
        {items.length > 0 && (
          <optgroup label="Newest runs">
            {items.map(({ runId, name }) => (
              <option key={runId} value={`from ${runId}`}>
                {name} ·{runId.slice(-4)}
              </option>
            ))}
          </optgroup>
        )}
      </select>
      <p className="mt-0.5 text-xs text-g7">
        {common && <CodeText text={common.summary} />}{" "}
        <Link href={edit} className="text-accent-text hover:underline">
          See it whole
        </Link>
        . {runs.error && "The runs can't be listed now; presets can be chosen."}
      </p>
    </div>
  );
}

"use client";
/** What the runs of a project may hold together. */
import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type JSX, useId, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { formatCount } from "../../format/numbers.ts";
import { NumberField, readNumber } from "./number-field.tsx";
import { poolWords, resourceOrder } from "./pool-words.ts";

type Resource = PoolInfo["resource"];
const limits = { min: 0, max: 1_000_000 };

export function QuotaSection({ pools, maySet }: { pools: readonly PoolInfo[]; maySet: boolean }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const set = useMutation(
    trpc.dispatch.setQuota.mutationOptions({
      onSuccess: () => client.invalidateQueries(trpc.schedule.pathFilter()),
    }),
  );
  const rows = pools.flatMap(({ resource, quotas }) => quotas.map((quota) => ({ resource, ...quota })));
  return (
    <section aria-label="Quotas" className="flex flex-col gap-2">
      <h2 className="text-lg font-semibold">Quotas</h2>
      {rows.length === 0 ? (
        <p className="text-g7">
          No project has one: each may hold all of a pool. A quota bounds what the runs of a project hold together; it
          takes nothing away that is held.
        </p>
      ) : (
        <Table label="Quotas">
          <thead>
            <tr>
              <Th>Project</Th>
              <Th>Pool</Th>
              <Th right>Held of quota</Th>
              {maySet && <ActionsTh />}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ resource, project, quota, held }) => (
              <tr key={`${project} ${resource}`} className="hover:bg-g1">
                <Td>{project}</Td>
                <Td>{poolWords[resource].label}</Td>
                <Td right className={held > quota ? "text-paused" : undefined}>
                  {formatCount(held)} <span className="text-g7">of</span> {formatCount(quota)}
                </Td>
                {maySet && (
                  <Td className="text-right">
                    <Button
                      small
                      disabled={set.isPending}
                      onClick={() => set.mutate({ project, resource, quota: null })}
                    >
                      Take away
                    </Button>
                  </Td>
                )}
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {set.error && <ErrorBanner error={set.error} doing="set the quota" />}
      {maySet && <QuotaForm pending={set.isPending} onSet={(quota) => set.mutate(quota)} />}
    </section>
  );
}

function QuotaForm({
  pending,
  onSet,
}: {
  pending: boolean;
  onSet(quota: { project: string; resource: Resource; quota: number }): void;
}): JSX.Element {
  const [project, setProject] = useState("");
  const [resource, setResource] = useState<Resource>("sandbox");
  const [text, setText] = useState("");
  const ids = { project: useId(), resource: useId() };
  const quota = readNumber(text, limits);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (quota === null || project.trim() === "") return;
    onSet({ project: project.trim(), resource, quota });
    setText("");
  };
  const input = "h-8 rounded-md border border-g4 bg-g0 px-2";
  return (
    <form onSubmit={submit} className="flex flex-wrap items-end gap-3">
      <div className="flex flex-col gap-0.5">
        <label htmlFor={ids.project} className="text-sm text-g7">
          Project
        </label>
        <input
          id={ids.project}
          value={project}
          maxLength={100}
          onChange={(event) => setProject(event.target.value)}
          className={input}
        />
      </div>
      <div className="flex flex-col gap-0.5">
        <label htmlFor={ids.resource} className="text-sm text-g7">
          Pool
        </label>
        <select
          id={ids.resource}
          value={resource}
          onChange={(event) => setResource(resourceOrder.find((each) => each === event.target.value) ?? "sandbox")}
          className={input}
        >
          {resourceOrder.map((each) => (
            <option key={each} value={each}>
              {poolWords[each].label}
            </option>
          ))}
        </select>
      </div>
      <NumberField
        label="Quota"
        hint="Leases that all its runs may hold together"
        text={text}
        limits={limits}
        onChange={setText}
        width="w-28"
      />
      <Button type="submit" disabled={pending || quota === null || project.trim() === ""}>
        Set quota
      </Button>
    </form>
  );
}

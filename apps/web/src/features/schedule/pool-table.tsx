"use client";
/** Every pool: used of size as a bar of its runs' shares, who waits, what is kept for evaluation. */
import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import type { JSX } from "react";
import { runColour } from "../../charts/run-colour.ts";
import { Button } from "../../design/button.tsx";
import { ActionsTh, Table, Td, Th } from "../../design/table.tsx";
import { formatCount, formatFraction } from "../../format/numbers.ts";
import { poolWords } from "./pool-words.ts";

export function PoolTable({
  pools,
  onEdit,
}: {
  pools: readonly PoolInfo[];
  /** Null: may not be set by whoever looks. */
  onEdit: ((pool: PoolInfo) => void) | null;
}): JSX.Element {
  return (
    <Table label="Pools">
      <thead>
        <tr>
          <Th>Pool</Th>
          <Th className="w-[38%]">Shares of the runs</Th>
          <Th right title="Leases held now, of how many there are">
            Used of size
          </Th>
          <Th right title="Used and kept ÷ size">
            Use
          </Th>
          <Th right title="Rollouts that wait for the stage this serves, of all runs">
            Waiting
          </Th>
          <Th right title="Leases that only evaluation rollouts may take">
            Kept for evaluation
          </Th>
          {onEdit && <ActionsTh />}
        </tr>
      </thead>
      <tbody>
        {pools.map((pool) => (
          <tr key={pool.resource} data-pool={pool.resource} className="hover:bg-g1">
            <Td title={poolWords[pool.resource].definition} className="whitespace-nowrap">
              {poolWords[pool.resource].label}
            </Td>
            <Td>
              <ShareBar pool={pool} />
            </Td>
            <Td right>
              {formatCount(pool.used)} <span className="text-g7">of</span> {formatCount(pool.size)}
              {pool.kept > 0 && (
                <span className="block font-sans text-xs leading-3 text-paused" title={keptWords}>
                  and {formatCount(pool.kept)} kept
                </span>
              )}
            </Td>
            <Td right className="text-g7">
              {pool.size > 0 ? formatFraction((pool.used + pool.kept) / pool.size) : "n/a"}
            </Td>
            <Td right>{formatCount(pool.runs.reduce((sum, run) => sum + run.waiting, 0))}</Td>
            <Td right>{formatCount(pool.evaluationReserve)}</Td>
            {onEdit && (
              <Td className="text-right">
                <Button
                  small
                  aria-label={`Set ${poolWords[pool.resource].label.toLowerCase()}`}
                  onClick={() => onEdit(pool)}
                >
                  Set
                </Button>
              </Td>
            )}
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

const keptWords =
  "Sandboxes that stay for people to look into: they take room of the pool though no run holds them. Each run's Sandboxes tab closes its own.";

function ShareBar({ pool }: { pool: PoolInfo }): JSX.Element {
  const of = Math.max(1, pool.size);
  const text = pool.runs.filter(({ held }) => held > 0).map(({ name, held }) => `${name} ${held}`);
  if (pool.kept > 0) text.push(`kept for people ${pool.kept}`);
  return (
    <span
      role="img"
      aria-label={text.length === 0 ? "nothing is held" : `held: ${text.join(", ")}`}
      className="relative flex h-3 gap-px overflow-hidden rounded-[3px] bg-g2"
    >
      {pool.runs
        .filter(({ held }) => held > 0)
        .map((run) => (
          <span
            key={run.runId}
            title={`${run.name}: ${formatCount(run.held)} of ${formatCount(pool.size)}`}
            className="h-full min-w-[2px]"
            style={{ width: `${(run.held / of) * 100}%`, background: runColour(run) }}
          />
        ))}
      {pool.kept > 0 && (
        <span
          title={`${formatCount(pool.kept)} stay for people`}
          className="waiting-fill h-full min-w-[2px] [--fill:var(--status-paused)]"
          style={{ width: `${(pool.kept / of) * 100}%` }}
        />
      )}
      {pool.evaluationReserve > 0 && (
        <span
          title={`${formatCount(pool.evaluationReserve)} kept for evaluation`}
          className="hatched absolute inset-y-0 right-0"
          style={{ width: `${Math.min(100, (pool.evaluationReserve / of) * 100)}%` }}
        />
      )}
    </span>
  );
}

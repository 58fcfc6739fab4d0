"use client";
import type { PoolInfo } from "@rolldeck/contracts/api/schedule";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { formatCount } from "../../format/numbers.ts";
import { NumberField, readNumber } from "./number-field.tsx";
import { poolWords } from "./pool-words.ts";

const limits = { min: 0, max: 1_000_000 };

/** Size and reserve of one pool; a size below what is held is told to come to hold later. */
export function PoolDialog({ pool, onClose }: { pool: PoolInfo; onClose(): void }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [size, setSize] = useState(String(pool.size));
  const [reserve, setReserve] = useState(String(pool.evaluationReserve));
  const set = useMutation(
    trpc.dispatch.setPool.mutationOptions({
      onSuccess: async () => {
        await client.invalidateQueries(trpc.schedule.pathFilter());
        onClose();
      },
    }),
  );
  const wanted = { size: readNumber(size, limits), reserve: readNumber(reserve, limits) };
  const { label, definition } = poolWords[pool.resource];
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Set ${label.toLowerCase()}`}
      description={`${definition} Runs that wait are given what becomes free at the planner's next round; nothing that is held is taken away.`}
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (wanted.size !== null && wanted.reserve !== null)
            set.mutate({ resource: pool.resource, size: wanted.size, evaluationReserve: wanted.reserve });
        }}
      >
        <div className="flex gap-3">
          <NumberField label="Size" text={size} limits={limits} onChange={setSize} width="w-28" />
          <NumberField
            label="Kept for evaluation"
            hint="Leases that only evaluation rollouts may take"
            text={reserve}
            limits={limits}
            onChange={setReserve}
            width="w-28"
          />
        </div>
        {wanted.size !== null && wanted.size < pool.used && (
          <p className="text-sm text-paused">
            {formatCount(pool.used)} are held: the pool becomes that small for now. Set it again when they came back.
          </p>
        )}
        {set.error && <ErrorBanner error={set.error} doing="set the pool" />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            type="submit"
            disabled={wanted.size === null || wanted.reserve === null || set.isPending}
          >
            Set pool
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

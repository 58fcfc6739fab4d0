"use client";
/** Bounds, priority and weight of a run that is under way. */
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { Dialog } from "../../design/dialog.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { NumberField, readNumber } from "./number-field.tsx";

const bound = { min: 1, max: 4096 };
const fields = {
  init: { label: "bounds.init", limits: bound, hint: "Rollouts in the init stage at once" },
  run: { label: "bounds.run", limits: bound, hint: "Rollouts in the run stage at once" },
  evaluate: { label: "bounds.evaluate", limits: bound, hint: "Rollouts in the evaluate stage at once" },
  priority: {
    label: "Priority",
    limits: { min: 0, max: 9 },
    hint: "Higher is served first; a lower one keeps a place of each pool",
  },
  weight: {
    label: "Weight",
    limits: { min: 0.1, max: 100, whole: false },
    hint: "Share of a pool among runs of one priority",
  },
} as const;
type Field = keyof typeof fields;
const names = ["init", "run", "evaluate", "priority", "weight"] as const satisfies readonly Field[];

function presentOf({ config, dispatch }: RunDetail): Record<Field, number> {
  const now = { ...config.dispatcher, ...dispatch };
  return { ...now.bounds, priority: now.priority, weight: now.weight };
}

export function DispatchDialog({ run, onClose }: { run: RunDetail; onClose(): void }): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [present] = useState(() => presentOf(run));
  const [typed, setTyped] = useState<Partial<Record<Field, string>>>({});
  const change = useMutation(
    trpc.dispatch.change.mutationOptions({
      onSuccess: async () => {
        await client.invalidateQueries(trpc.runs.get.queryFilter({ runId: run.runId }));
        onClose();
      },
    }),
  );
  const textOf = (name: Field) => typed[name] ?? String(present[name]);
  const numberOf = (name: Field) => readNumber(textOf(name), fields[name].limits);
  const invalid = names.some((name) => numberOf(name) === null);
  const changed = names.filter((name) => numberOf(name) !== present[name]);
  const send = () => {
    const value = (name: Field) => (changed.includes(name) ? (numberOf(name) ?? undefined) : undefined);
    const bounds = { init: value("init"), run: value("run"), evaluate: value("evaluate") };
    change.mutate({ runId: run.runId, bounds, priority: value("priority"), weight: value("weight") });
  };
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="Change how this run is dispatched"
      width={520}
      description="It holds from the planner's next round on and is in the run's log; the config stays as it was launched. A bound that shrinks stops nothing: what runs comes to its end, and nothing new is admitted above it. Sandboxes and partial work stay as they are."
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          if (!invalid && changed.length > 0) send();
        }}
      >
        <div className="flex flex-wrap gap-3">
          {names.map((name) => (
            <NumberField
              key={name}
              {...fields[name]}
              text={textOf(name)}
              onChange={(text) => setTyped({ ...typed, [name]: text })}
            />
          ))}
        </div>
        {change.error && <ErrorBanner error={change.error} doing="change the dispatch" />}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={invalid || changed.length === 0 || change.isPending}>
            Change
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

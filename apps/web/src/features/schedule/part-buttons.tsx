"use client";
/** Hold, resume and cancel of a step, group or rollout, each told before it is done. */
import type { PartAction, PartReply } from "@rolldeck/contracts/api/dispatch";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type JSX, useState } from "react";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { Chip } from "../../design/chip.tsx";
import { DoingDialog } from "../../design/doing-dialog.tsx";
import { partAction, partTitle, partWords } from "./part-words.ts";

export function PartButtons({
  part,
  id,
  small = false,
}: {
  part: PartReply["part"];
  id: string;
  small?: boolean;
}): JSX.Element | null {
  const trpc = useTRPC();
  const client = useQueryClient();
  const [asked, setAsked] = useState<PartAction | null>(null);
  const options = {
    onSuccess: () => {
      setAsked(null);
      void client.invalidateQueries();
    },
  };
  const step = useMutation(trpc.dispatch.actOnStep.mutationOptions(options));
  const group = useMutation(trpc.dispatch.actOnGroup.mutationOptions(options));
  const rollout = useMutation(trpc.dispatch.actOnRollout.mutationOptions(options));
  const mutation = { step, group, rollout }[part];
  const act = (action: PartAction) => {
    if (part === "step") step.mutate({ stepId: id, action });
    else if (part === "group") group.mutate({ groupId: id, action });
    else rollout.mutate({ rolloutId: id, action });
  };
  const state = useQuery(trpc.schedule.part.queryOptions({ part, id }, { refetchInterval: 5_000 }));
  if (!state.data || (state.data.over && !asked)) return null;
  const shown: PartAction[] = [state.data.held ? "resume" : "hold", "cancel"];
  return (
    <span className="inline-flex items-center gap-2">
      {state.data.held && <Chip tone="paused">held</Chip>}
      {shown.map((action) => (
        <Button
          key={action}
          small={small}
          className={small ? undefined : "h-7! px-2!"}
          onClick={() => setAsked(action)}
        >
          {partAction(part, action)}
        </Button>
      ))}
      {asked && (
        <DoingDialog
          title={partTitle(part, asked)}
          action={partAction(part, asked)}
          danger={asked === "cancel"}
          pending={mutation.isPending}
          error={mutation.error}
          doing={`${asked} the ${part}`}
          onConfirm={() => act(asked)}
          onClose={() => {
            mutation.reset();
            setAsked(null);
          }}
        >
          <p>{partWords(part, asked)}</p>
        </DoingDialog>
      )}
    </span>
  );
}

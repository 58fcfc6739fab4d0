/** The state of a host or a GPU worker, with what it means; and why it is so, with what would help. */
import type { FleetReason } from "@rolldeck/contracts/fleet";
import type { JSX } from "react";
import { Chip } from "../../design/chip.tsx";
import { CodeText } from "../../design/code-text.tsx";
import { Mark } from "../../design/mark.tsx";
import type { StateLook } from "./fleet-states.ts";

export function FleetState({
  look: { tone, shape, meaning },
  text,
  why,
}: {
  look: StateLook;
  text: string;
  why: FleetReason | null;
}): JSX.Element {
  return (
    <>
      <Chip tone={tone} title={meaning}>
        <Mark shape={shape} size={9} turning={shape === "half"} /> {text}
      </Chip>
      {why !== null && <FleetWhy reason={why} />}
    </>
  );
}

export function FleetWhy({ reason }: { reason: FleetReason }): JSX.Element {
  return (
    <div className="max-w-[44ch] text-sm text-g8">
      <CodeText text={reason.message} />
      {reason.remedy !== null && (
        <div className="text-g7">
          <CodeText text={reason.remedy} />
        </div>
      )}
    </div>
  );
}

import type { JSX } from "react";
import { Segmented } from "../../design/segmented.tsx";

type Purpose = "train" | "evaluate";

/** Train steps or held-out evaluations of a run; nothing to choose in a run that only evaluates, unless its address says train. */
export function PurposeSwitch({
  kind,
  purpose,
  onChange,
}: {
  kind: Purpose;
  purpose: Purpose;
  onChange(purpose: Purpose): void;
}): JSX.Element | null {
  if (kind === "evaluate" && purpose === "evaluate") return null;
  return (
    <Segmented
      label="Purpose"
      options={[
        { value: "train", label: "Train" },
        { value: "evaluate", label: "Held-out" },
      ]}
      value={purpose}
      onChange={onChange}
    />
  );
}

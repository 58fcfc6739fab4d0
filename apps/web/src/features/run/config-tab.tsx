"use client";
import type { RunDetail } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import { stringify } from "yaml";
import { Button, ButtonLink } from "../../design/button.tsx";
import { CodeBlock } from "../../design/copy-text.tsx";
import { downloadText } from "../../format/download.ts";

/** The whole config with every default filled in, as it was launched. */
export function ConfigTab({ run }: { run: RunDetail }): JSX.Element {
  const yaml = stringify(run.config);
  return (
    <div className="flex min-h-0 flex-col gap-3 p-4">
      <div className="flex items-center gap-2">
        <ButtonLink href={`/runs/new?from=${run.runId}`}>Relaunch with changes</ButtonLink>
        <Button onClick={() => downloadText(`${run.runId}.yaml`, "application/yaml", yaml)}>Save as YAML</Button>
        <span className="text-sm text-g7">Every default is filled in: this file launches the same run anywhere.</span>
      </div>
      <div className="max-w-[860px]">
        <CodeBlock label="Config as YAML" text={yaml} />
      </div>
    </div>
  );
}

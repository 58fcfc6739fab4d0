import type { ConfigIssue } from "@rolldeck/contracts/api/runs";
import type { JSX } from "react";
import type { z } from "zod";
import { CodeText } from "../../design/code-text.tsx";

/** What is wrong with a setting, and what to do, as a sentence of its own. */
export function IssueText({ issue }: { issue: Pick<z.infer<typeof ConfigIssue>, "message" | "fix"> }): JSX.Element {
  const { message, fix } = issue;
  return (
    <>
      <CodeText text={message} />
      {fix && (
        <>
          . <CodeText text={`${fix.charAt(0).toUpperCase()}${fix.slice(1)}`} />
        </>
      )}
    </>
  );
}

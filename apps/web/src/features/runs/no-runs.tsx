"use client";
import type { JSX } from "react";
import { Button, ButtonLink } from "../../design/button.tsx";
import { CodeBlock } from "../../design/copy-text.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { useOrigin } from "../shell/use-origin.ts";
import { terms, withoutTerm } from "./run-query.ts";

export function NoRuns(): JSX.Element {
  const origin = useOrigin();
  return (
    <EmptyState title="No runs yet">
      <p>A run trains or evaluates one policy. Start from a preset and change what you like:</p>
      <div>
        <ButtonLink href="/runs/new?preset=quickstart">Open the quickstart preset</ButtonLink>
      </div>
      <p>Or from a terminal in the project folder:</p>
      <CodeBlock label="Launch command" text="npx rolldeck run launch --preset quickstart --watch" />
      <p>Or over REST, with a token from Settings:</p>
      <CodeBlock
        label="Launch request"
        text={[
          `curl ${origin}/api/v1/runs \\`,
          `  -H "Authorization: Bearer $ROLLDECK_TOKEN" \\`,
          `  -H "Content-Type: application/json" \\`,
          `  -d '{"config":{"taskSets":[{"name":"key-chain"}]}}'`,
        ].join("\n")}
      />
    </EmptyState>
  );
}

/** Names the filters so that the one in the way can go. */
export function NoMatch({ query, onQuery }: { query: string; onQuery(query: string): void }): JSX.Element {
  return (
    <EmptyState title="No run matches">
      <p>Remove a term of the filter:</p>
      <div className="flex flex-wrap gap-2">
        {terms(query).map((term) => (
          <Button key={term} onClick={() => onQuery(withoutTerm(query, term))}>
            <span className="mono text-sm">{term}</span> ×
          </Button>
        ))}
        <Button look="quiet" onClick={() => onQuery("")}>
          Clear all
        </Button>
      </div>
    </EmptyState>
  );
}

"use client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type JSX, type SyntheticEvent, useState } from "react";
import { problemOf } from "../../api/problem.ts";
import { useTRPC } from "../../api/query-provider.tsx";
import { Button } from "../../design/button.tsx";
import { ConfirmDialog } from "../../design/confirm-dialog.tsx";
import { CodeBlock } from "../../design/copy-text.tsx";
import { ErrorBanner } from "../../design/error-banner.tsx";
import { QueryError } from "../../design/query-error.tsx";
import { Table, Td, Th } from "../../design/table.tsx";
import { TimeAgo } from "../../design/time-ago.tsx";

export function ApiTokens(): JSX.Element {
  const trpc = useTRPC();
  const client = useQueryClient();
  const tokens = useQuery(trpc.auth.listTokens.queryOptions());
  const changed = () => client.invalidateQueries(trpc.auth.listTokens.queryFilter());
  const create = useMutation(trpc.auth.createToken.mutationOptions({ onSuccess: changed }));
  const revoke = useMutation(trpc.auth.revokeToken.mutationOptions({ onSuccess: changed }));
  const [name, setName] = useState("");
  const [scope, setScope] = useState<"read" | "write">("write");
  const [revoking, setRevoking] = useState<{ readonly tokenId: string; readonly name: string } | null>(null);
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    create.mutate({ name, scope }, { onSuccess: () => setName("") });
  };
  const nameError = create.error
    ? problemOf(create.error).errors.find((issue) => issue.path.includes("name"))
    : undefined;
  return (
    <section aria-label="API tokens" className="flex flex-col gap-3">
      <h2 className="text-lg font-semibold">API tokens</h2>
      <p className="text-g8">
        For scripts, the command line on another machine and outside trainers. A token is shown once; only its hash is
        kept.
      </p>
      <form onSubmit={submit} className="flex items-end gap-2">
        <label className="flex flex-col gap-1 text-sm text-g7">
          Name
          <input
            value={name}
            maxLength={100}
            required
            aria-invalid={nameError !== undefined}
            onChange={(event) => setName(event.target.value)}
            className="h-8 w-64 rounded-md border border-g4 bg-transparent px-2 text-base text-g9 aria-[invalid=true]:border-failed"
          />
        </label>
        <label className="flex flex-col gap-1 text-sm text-g7">
          May
          <select
            value={scope}
            onChange={(event) => setScope(event.target.value === "read" ? "read" : "write")}
            className="h-8 rounded-md border border-g4 bg-g0 px-2 text-base text-g9"
          >
            <option value="read">read</option>
            <option value="write">read and write</option>
          </select>
        </label>
        <Button type="submit" disabled={create.isPending || name.trim() === ""}>
          Create token
        </Button>
      </form>
      {create.error && <ErrorBanner error={create.error} doing="create the token" />}
      {revoke.error && <ErrorBanner error={revoke.error} doing="revoke the token" />}
      {create.data && (
        <div className="flex flex-col gap-1">
          <p className="text-sm font-medium">Copy {create.data.name} now: it is not shown again.</p>
          <CodeBlock label="New token" text={create.data.secret} />
        </div>
      )}
      <QueryError query={tokens} doing="list the tokens" />
      {tokens.data && tokens.data.length === 0 && <p className="text-g7">No tokens yet.</p>}
      {tokens.data && tokens.data.length > 0 && (
        <Table label="API tokens">
          <thead>
            <tr>
              <Th>Name</Th>
              <Th>May</Th>
              <Th right>Created</Th>
              <Th right>Last used</Th>
              <Th />
            </tr>
          </thead>
          <tbody>
            {tokens.data.map((token) => (
              <tr key={token.tokenId} className="hover:bg-g1">
                <Td>{token.name}</Td>
                <Td>{token.scope === "write" ? "read and write" : "read"}</Td>
                <Td right>
                  <TimeAgo at={token.createdAt} />
                </Td>
                <Td right>{token.lastUsedAt ? <TimeAgo at={token.lastUsedAt} /> : "never"}</Td>
                <Td right>
                  <Button look="quiet" small className="font-sans" onClick={() => setRevoking(token)}>
                    Revoke
                  </Button>
                </Td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      <ConfirmDialog
        open={revoking !== null}
        onOpenChange={() => setRevoking(null)}
        title={`Revoke ${revoking?.name ?? ""}?`}
        action="Revoke token"
        onConfirm={() => revoking && revoke.mutate({ tokenId: revoking.tokenId })}
      >
        <p>Whatever uses it is refused from now on. It can't be brought back; make a new token instead.</p>
      </ConfirmDialog>
    </section>
  );
}

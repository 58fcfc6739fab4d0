import { RunConfig } from "@rolldeck/contracts/run-config";
import { expect, test } from "vitest";
import { mcpIssues } from "./mcp-issues.ts";

const servers = [
  { name: "files", refusal: null },
  { name: "boxed", refusal: "it runs inside a sandbox" },
];
const issues = (mcp: unknown[], known = servers) =>
  mcpIssues(RunConfig.parse({ taskSets: [{ name: "key-chain" }], agent: { mcp } }), known);

test("a server of the list may be mounted, also twice under two prefixes", () => {
  expect(issues([{ server: "files" }, { server: "files", prefix: "more" }])).toEqual([]);
});

test("a server that is not on the list is refused, with the nearest that is", () => {
  expect(issues([{ server: "files" }, { server: "fils" }])).toEqual([
    { path: "agent.mcp[1].server", message: 'no MCP server "fils"', fix: "did you mean files?" },
  ]);
  expect(issues([{ server: "npx evil" }], [])).toEqual([
    { path: "agent.mcp[0].server", message: 'no MCP server "npx evil"', fix: "the operator listed none" },
  ]);
});

test("one that needs a sandbox is refused with that reason", () => {
  expect(issues([{ server: "boxed" }])).toMatchObject([
    { path: "agent.mcp[0].server", message: "MCP server boxed can't be used: it runs inside a sandbox" },
  ]);
});

test("two under one prefix are refused", () => {
  const doubled = [{ server: "files" }, { server: "boxed", prefix: "files" }];
  expect(issues(doubled, [{ name: "boxed", refusal: null }, ...servers])).toMatchObject([
    { path: "agent.mcp[1].prefix", message: "has the prefix of agent.mcp[0], files" },
  ]);
});

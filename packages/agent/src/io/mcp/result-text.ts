/** A result of an MCP tool as text. Pure. What is no text is named, with its kind and size, so the model knows that it is there. */
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { ToolOutcome } from "@rolldeck/contracts/ports/tool";
import { headWithin } from "../../core/cut-text.ts";

type Block = CallToolResult["content"][number];

export function outcomeOf(result: CallToolResult): ToolOutcome {
  const shown = result.content.map(blockText);
  const structured = result.structuredContent === undefined ? "" : JSON.stringify(result.structuredContent);
  // Servers repeat structured content as text for those who read only that.
  const output = shown.length > 0 ? shown.join("\n") : structured;
  if (result.isError !== true) return { output };
  const message = output === "" ? "the tool failed without saying why" : output;
  return { output: message, error: { code: "mcp_error", message: headWithin(message, 500) } };
}

function blockText(block: Block): string {
  if (block.type === "text") return block.text;
  if (block.type === "image" || block.type === "audio")
    return `[${block.type}, ${block.mimeType}, ${bytesOf(block.data)} bytes: not shown]`;
  if (block.type === "resource_link") return `[link to ${block.name}: ${block.uri}]`;
  const { resource } = block;
  return "text" in resource
    ? resource.text
    : `[${resource.uri}, ${resource.mimeType ?? "unknown type"}, ${bytesOf(resource.blob)} bytes: not shown]`;
}

/** Of base64, where at most two signs fill up the end. A server may send anything else: it is only measured. */
const bytesOf = (data: string): number => Math.floor((data.replace(/={1,2}$/, "").length * 3) / 4);

/** Every tool by its name. Adding one: its file and a line here. */
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { finish } from "./finish.ts";
import { get } from "./get.ts";

export const tools = { finish, get } satisfies Record<string, Tool>;
export type ToolName = keyof typeof tools;

/** The tool of that name, or undefined: names come from configurations and from models. */
export const findTool = (name: string): Tool | undefined => Object.entries(tools).find(([key]) => key === name)?.[1];

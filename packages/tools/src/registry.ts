/** Every tool by its name. Adding one: its file and a line here. */
import type { Tool } from "@rolldeck/contracts/ports/tool";
import { bash } from "./bash/bash.ts";
import { executeBash } from "./bash/execute-bash.ts";
import { search } from "./code-search/search.ts";
import { delegate } from "./delegate.ts";
import { dropOldObservations } from "./drop-old-observations.ts";
import { strReplaceEditor } from "./editor/str-replace-editor.ts";
import { finish } from "./finish.ts";
import { get } from "./get.ts";
import { localSearch } from "./local-search.ts";
import { nextWithSummary } from "./next-with-summary.ts";
import { submit } from "./submit.ts";
import { summariseHistory } from "./summarise-history.ts";
import { think } from "./think.ts";

export const tools = {
  bash,
  delegate,
  drop_old_observations: dropOldObservations,
  execute_bash: executeBash,
  finish,
  get,
  local_search: localSearch,
  next_with_summary: nextWithSummary,
  search,
  str_replace_editor: strReplaceEditor,
  submit,
  summarise_history: summariseHistory,
  think,
} satisfies Record<string, Tool>;
export type ToolName = keyof typeof tools;

/** The tool of that name, or undefined: names come from configurations and from models. */
export const findTool = (name: string): Tool | undefined => Object.entries(tools).find(([key]) => key === name)?.[1];

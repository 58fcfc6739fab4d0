/**
 * `str_replace_editor`: views and edits files of the rollout's sandbox. A failed edit is an observation, in exactly the words that
 * agents of the instance's profile know; a lost sandbox is none and passes through.
 */
import { BoundaryError } from "@rolldeck/contracts/errors";
import { z } from "zod";
import { defineTool } from "../define-tool.ts";
import { openhandsProfile } from "./openhands-profile.ts";
import { type Condense, type EditorProfile, EditRefusal } from "./profile.ts";
import { runCommand } from "./run-command.ts";
import { skyrlProfile } from "./skyrl-profile.ts";

export const editorProfiles = {
  openhands: openhandsProfile,
  skyrl: skyrlProfile,
} satisfies Record<string, EditorProfile>;
export type EditorProfileName = keyof typeof editorProfiles;

/** What an instance's `state` may hold for this tool. */
export const EditorScope = z.object({
  editor: z.object({ profile: z.enum(["openhands", "skyrl"]).default("openhands") }).prefault({}),
});

const commands = ["view", "create", "str_replace", "insert", "undo_edit"];

export const strReplaceEditor = defineTool({
  name: "str_replace_editor",
  description: [
    "View, create and edit text files.",
    "* `view` shows a file with line numbers, or a folder's files two levels deep.",
    "* `create` makes a new file; it never overwrites one.",
    "* `str_replace` replaces `old_str`, which must occur exactly once in the file, blanks included. Take enough lines around it.",
    "* `insert` puts `new_str` behind line `insert_line`.",
    "* `undo_edit` takes the last edit of the file back.",
    "Long outputs are cut and marked with <response clipped>.",
  ].join("\n"),
  arguments: z.strictObject({
    command: z.string().describe("What to do").meta({ enum: commands }),
    path: z.string().describe("Absolute path of a file or folder"),
    file_text: z.string().optional().describe("For `create`: the content of the file"),
    old_str: z.string().optional().describe("For `str_replace`: the text to replace"),
    new_str: z
      .string()
      .optional()
      .describe("For `str_replace`: the new text (none: delete); for `insert`: the lines to add"),
    insert_line: z.int().optional().describe("For `insert`: the line behind which to add; 0 = before the first"),
    view_range: z
      .array(z.int())
      .optional()
      .describe("For `view`: first and last line to show; -1 as the last = to the end"),
  }),
  idempotent: false,
  call: async (args, { instance, sandbox, signal }) => {
    if (sandbox === undefined) {
      throw new BoundaryError("infrastructure", "no_sandbox", "str_replace_editor needs a task with a sandbox");
    }
    const scope = EditorScope.safeParse(instance);
    if (!scope.success) {
      throw new BoundaryError("infrastructure", "bad_editor", "the instance's editor settings can't be read", {
        cause: scope.error,
      });
    }
    const profile: EditorProfile = editorProfiles[scope.data.editor.profile];
    try {
      return { output: await runCommand({ sandbox, profile, condense, signal }, args) };
    } catch (error) {
      if (!(error instanceof EditRefusal)) throw error;
      const output = profile.failure(error.message);
      return { output, error: { code: "edit_refused", message: error.message } };
    }
  },
});

/** The parser is loaded by those who need it. */
const condense: Condense = async (text) => (await import("./condense-python.ts")).condensePython(text);

/**
 * The editor's commands. Invariants: outside of what an edit changes, the file's bytes stay; an edit that can't be made is an
 * EditRefusal in the profile's words and changes nothing; nothing is read from or written to anything but the sandbox.
 */
import { posix } from "node:path";
import type { Sandbox } from "@rolldeck/contracts/ports/sandbox";
import { hasHalfPair } from "../has-half-pair.ts";
import { newestHistory, pushHistory } from "./edit-history.ts";
import { findText, insertLines, replaceMatch } from "./edit-text.ts";
import { type Condense, type EditorProfile, EditRefusal, type OsReason, osError } from "./profile.ts";
import { listFolder, type PathFacts, probePath, readBytes, writeBytes } from "./sandbox-files.ts";
import { type DecodedText, decodeText, type Encoding, encodeText } from "./text-codec.ts";

export interface EditorScene {
  readonly sandbox: Sandbox;
  readonly profile: EditorProfile;
  readonly condense: Condense;
  readonly signal: AbortSignal;
}
export interface EditorArguments {
  readonly command: string;
  readonly path: string;
  readonly file_text?: string | undefined;
  readonly old_str?: string | undefined;
  readonly new_str?: string | undefined;
  readonly insert_line?: number | undefined;
  readonly view_range?: readonly number[] | undefined;
}

export const maxFileBytes = 10 * 1024 * 1024;
/** Places of one text that are told. */
const maxPlaces = 200;

type File = Extract<PathFacts, { kind: "file" }>;
/** An existing file, decoded. */
interface Opened extends DecodedText {
  readonly path: string;
  readonly target: string;
  readonly bytes: Uint8Array;
  readonly writable: boolean;
}

/** What the model reads. @throws EditRefusal */
export async function runCommand(scene: EditorScene, args: EditorArguments): Promise<string> {
  const { profile, sandbox } = scene;
  const { command } = args;
  const path = await absolutePath(scene, args.path);
  const facts = await probePath(sandbox, path, scene.signal);
  refuseByPath(profile, command, path, facts);
  switch (command) {
    case "view":
      return view(scene, path, facts, args.view_range ?? null);
    case "create":
      return create(scene, path, facts, needed(profile, command, "file_text", args.file_text));
    case "str_replace": {
      const wanted = needed(profile, command, "old_str", args.old_str);
      const equal = args.new_str === wanted ? profile.equalTexts(wanted) : null;
      if (equal !== null) throw new EditRefusal(equal);
      return replace(scene, await open(scene, path, facts), wanted, args.new_str ?? "");
    }
    case "insert": {
      const after = needed(profile, command, "insert_line", args.insert_line);
      const added = needed(profile, command, "new_str", args.new_str);
      return insert(scene, await open(scene, path, facts), after, added);
    }
    case "undo_edit":
      return undo(scene, path, facts);
    default:
      throw new EditRefusal(profile.unknownCommand(command));
  }
}

function needed<T>(profile: EditorProfile, command: string, name: string, value: T | undefined): T {
  if (value === undefined) throw new EditRefusal(profile.missingArgument(command, name));
  return value;
}

/** As Python's Path writes it: no double or final slashes, no `.` parts; `..` stays. */
const tidy = (path: string): string => {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  return path.startsWith("/") ? `/${parts.join("/")}` : parts.join("/") || ".";
};

async function absolutePath({ sandbox, profile, signal }: EditorScene, given: string): Promise<string> {
  const path = tidy(given);
  if (path.includes("\0")) throw new EditRefusal(profile.missing(path.replaceAll("\0", "\\0")));
  // As bytes it would be another path's.
  if (hasHalfPair(path)) throw new EditRefusal(profile.missing(path));
  if (path.startsWith("/")) return path;
  const inFolder = tidy(posix.join(sandbox.workdir, path));
  if (profile.relativePath(path, null) === null) return inFolder;
  const { kind } = await probePath(sandbox, inFolder, signal);
  throw new EditRefusal(profile.relativePath(path, kind === "missing" ? null : inFolder) ?? "");
}

function refuseByPath(profile: EditorProfile, command: string, path: string, facts: PathFacts): void {
  if (facts.kind === "denied") throw new EditRefusal(profile.unreadable(path, osError("denied", path)));
  if (command === "create" && facts.kind !== "missing") throw new EditRefusal(profile.exists(path));
  if (command !== "create" && facts.kind === "missing") throw new EditRefusal(profile.missing(path));
  if (command !== "view" && facts.kind === "folder") throw new EditRefusal(profile.folder(path));
}

async function open(scene: EditorScene, path: string, facts: PathFacts): Promise<Opened> {
  const { profile, sandbox, signal } = scene;
  if (facts.kind !== "file") throw new EditRefusal(profile.binary(path));
  if (facts.bytes > maxFileBytes) throw new EditRefusal(profile.tooLarge(path, facts.bytes, maxFileBytes));
  const bytes = await readBytes(sandbox, facts.target, maxFileBytes, signal);
  if (bytes === "too_large") throw new EditRefusal(profile.tooLarge(path, facts.bytes, maxFileBytes));
  if (!(bytes instanceof Uint8Array)) throw new EditRefusal(profile.unreadable(path, osError(bytes, path)));
  const decoded = decodeText(bytes);
  if (decoded === null) throw new EditRefusal(profile.binary(path));
  return { ...decoded, path, target: facts.target, bytes, writable: facts.writable };
}

async function view(
  scene: EditorScene,
  path: string,
  facts: PathFacts,
  range: readonly number[] | null,
): Promise<string> {
  const { profile, sandbox, signal, condense } = scene;
  if (facts.kind === "folder") return profile.viewFolder(path, await listFolder(sandbox, path, signal), range);
  const hidden = profile.hidden(path);
  if (hidden !== null) throw new EditRefusal(hidden);
  const { text } = await open(scene, path, facts);
  return profile.viewFile(path, text, range, condense);
}

async function create(scene: EditorScene, path: string, facts: PathFacts, text: string): Promise<string> {
  const { profile, sandbox, signal } = scene;
  const refuse = (reason: OsReason): EditRefusal =>
    new EditRefusal(profile.unwritable(path, osError(reason, path), "create"));
  if (facts.kind === "missing" && facts.parent !== "folder") {
    throw refuse(facts.parent === "file" ? "notFolder" : facts.parent);
  }
  const bytes = encodeText({ encoding: "utf-8", text });
  if (bytes === null) throw new EditRefusal(profile.unwritable(path, cannotEncode("utf-8"), "create"));
  if (bytes.length > maxFileBytes) throw new EditRefusal(profile.tooLarge(path, bytes.length, maxFileBytes));
  const trouble = await writeBytes(sandbox, path, bytes, signal);
  if (trouble !== null) throw refuse(trouble);
  const before = profile.createUndoesTo === "empty" ? new Uint8Array() : bytes;
  await pushHistory(sandbox, await targetOf(scene, path), before, profile.undoDepth, signal);
  return profile.created(path, text);
}

const cannotEncode = (encoding: Encoding): string => `'${encoding}' codec can't encode a character of the new text`;

/** History goes by where the bytes are, however the file is called. */
async function targetOf({ sandbox, signal }: EditorScene, path: string): Promise<string> {
  const facts = await probePath(sandbox, path, signal);
  return facts.kind === "file" ? facts.target : path;
}

async function replace(scene: EditorScene, file: Opened, wanted: string, replacement: string): Promise<string> {
  const { profile } = scene;
  const { path, text } = file;
  const stripped = profile.triesStripped && findText(text, wanted, { limit: 1 }).length === 0;
  const [sought, fresh] = stripped ? [wanted.trim(), replacement.trim()] : [wanted, replacement];
  const matches = stripped && sought === "" ? [] : findText(text, sought, { limit: maxPlaces });
  const [match, another] = matches;
  if (match === undefined) throw new EditRefusal(profile.noMatch(sought, path, text));
  if (another !== undefined) {
    const places = profile.listsOverlapping ? findText(text, sought, { overlapping: true, limit: maxPlaces }) : matches;
    const lines = places.map(({ line }) => line);
    throw new EditRefusal(profile.severalMatches(sought, path, lines));
  }
  const edited = replaceMatch(text, match, fresh);
  await save(scene, file, edited, "str_replace");
  return profile.replaced(path, edited, match.line, fresh);
}

async function insert(scene: EditorScene, file: Opened, after: number, added: string): Promise<string> {
  const { profile } = scene;
  const limit = profile.insertLimit(file.text);
  if (after < 0 || after > limit) throw new EditRefusal(profile.badInsertLine(after, limit));
  const edited = insertLines(file.text, after, added);
  await save(scene, file, edited, "insert");
  return profile.inserted(file.path, edited, after, added);
}

/** History first: an edit whose history can't be written is still made, a history without its edit is taken back. */
async function save(scene: EditorScene, file: Opened, text: string, command: string): Promise<void> {
  const { profile, sandbox, signal } = scene;
  const { path, target, encoding } = file;
  const refuse = (why: string): EditRefusal => new EditRefusal(profile.unwritable(path, why, command));
  const bytes = encodeText({ encoding, text });
  if (bytes === null) throw refuse(cannotEncode(encoding));
  if (bytes.length > maxFileBytes) throw new EditRefusal(profile.tooLarge(path, bytes.length, maxFileBytes));
  if (!file.writable) throw refuse(osError("denied", path));
  await pushHistory(sandbox, target, file.bytes, profile.undoDepth, signal);
  const trouble = await writeBytes(sandbox, target, bytes, signal);
  if (trouble === null) return;
  const pushed = await newestHistory(sandbox, target, maxFileBytes, signal);
  await pushed?.drop();
  throw refuse(osError(trouble, path));
}

async function undo(scene: EditorScene, path: string, facts: PathFacts): Promise<string> {
  const { profile, sandbox, signal } = scene;
  const { target }: Pick<File, "target"> = facts.kind === "file" ? facts : { target: path };
  const before = await newestHistory(sandbox, target, maxFileBytes, signal);
  if (before === null) throw new EditRefusal(profile.noHistory(path));
  const trouble = await writeBytes(sandbox, target, before.bytes, signal);
  if (trouble !== null) throw new EditRefusal(profile.unwritable(path, osError(trouble, path), "undo_edit"));
  await before.drop();
  return profile.undone(path, decodeText(before.bytes)?.text ?? "");
}

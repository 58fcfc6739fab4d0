/** A config as text: YAML 1.2, of which JSON is a part. Anything wrong with the text is the writer's to correct, never a 500. */
import { InputError } from "@rolldeck/contracts/errors";
import { jsonDepth, maxJsonDepth } from "@rolldeck/contracts/json-depth";
import { type Document, parseDocument } from "yaml";
import { refuseUnstorable } from "../http/storable.ts";

const refused = (message: string, fix?: string): InputError =>
  new InputError([{ path: "", message, ...(fix ? { fix } : {}) }]);

/** @throws InputError with line and column */
export function parseConfigText(text: string): unknown {
  if (text.trim() === "") throw refused("the config is empty", "start from a preset");
  // Flow brackets are counted before the parser recurses into them; block nesting is bounded by its indentation.
  if (jsonDepth(text) > maxJsonDepth || blockDepth(text) > maxJsonDepth)
    throw refused(`the config is nested more than ${maxJsonDepth} levels deep`);
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: true, stringKeys: true });
  const [error] = document.errors;
  if (error) throw refused(`the text is not valid YAML: ${error.message.split("\n")[0]}`);
  const value = plainValue(document);
  if (refersToItself(value))
    throw refused("the config has an alias for what it is a part of", "write out what it stands for");
  // What came as JSON was looked at before; an escape in a YAML text becomes a character only now.
  refuseUnstorable(value);
  return value;
}

function plainValue(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: 50 });
  } catch (cause) {
    throw refused(`the text is not valid YAML: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
}

/** @param above what the value is a part of */
function refersToItself(value: unknown, above: ReadonlySet<unknown> = new Set()): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (above.has(value)) return true;
  const own = new Set([...above, value]);
  return Object.values(value).some((part) => refersToItself(part, own));
}

/** Most distinct indentations and list dashes open at once: what the parser may recurse into without brackets. */
function blockDepth(text: string): number {
  const open: number[] = [];
  let deepest = 0;
  for (const line of text.split("\n")) {
    const [, blank = "", dashes = ""] = /^( *)((?:[-?:] +)*)/u.exec(line) ?? [];
    if (line.trim() === "") continue;
    while ((open.at(-1) ?? -1) >= blank.length) open.pop();
    open.push(blank.length);
    deepest = Math.max(deepest, open.length + dashes.replaceAll(" ", "").length);
  }
  return deepest;
}

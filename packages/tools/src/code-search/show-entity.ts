/** Entities in words: whole, as a preview with a skeleton where they are long, or in one line. Each view ends with what to ask next. */

import { textStart } from "../text-place.ts";
import type { EntityRef } from "./indexed-file.ts";
import { refId } from "./indexed-file.ts";
import { type Entity, linesOf } from "./source-file.ts";

const wholeLines = 200;
const wholeFunctionLines = 400;
const previewLines = 50;
const skeletonEntries = 80;

export const kindOf = ({ file, place }: EntityRef): string => file.source.entities[place]?.kind ?? "file";

const rangeOf = ({ file, place }: EntityRef): readonly [from: number, to: number] => {
  const entity = file.source.entities[place];
  return entity === undefined ? [1, file.source.lines] : [entity.startLine, entity.endLine];
};

/** With line numbers, as the editor's view has them. */
export const numberedCode = (text: string, from: number, to: number): string =>
  linesOf(text, from, to)
    .map((line, place) => `${String(from + place).padStart(6)}\t${line}`)
    .join("\n");

const head = (ref: EntityRef): string => {
  const [from, to] = rangeOf(ref);
  return `Found ${kindOf(ref)} \`${refId(ref)}\` (lines ${from}-${to}).`;
};

export const foldedLine = (ref: EntityRef): string => {
  const [from, to] = rangeOf(ref);
  return `- ${kindOf(ref)} \`${refId(ref)}\` (lines ${from}-${to})`;
};

/** All of it, unless it is too long: then its parts. */
export function showWhole(ref: EntityRef, source: string): string {
  const [from, to] = rangeOf(ref);
  const limit = kindOf(ref) === "function" ? wholeFunctionLines : wholeLines;
  const lines = to - from + 1;
  if (lines <= limit) {
    const code = numberedCode(ref.file.source.text, from, to);
    return `${head(ref)}\nSource: ${source}\n${code}\n${hintFor(ref)}`;
  }
  if (kindOf(ref) === "function") {
    const code = numberedCode(ref.file.source.text, from, from + limit - 1);
    const rest = `Hint: ${lines - limit} more lines follow; view lines ${from + limit}-${to} of \`${ref.file.source.path}\` with the editor.`;
    return `${head(ref)}\nSource: ${source}\n${code}\n${rest}`;
  }
  return `${head(ref)}\nSource: ${source}\n${lines} lines are too many to show; its parts are:\n${skeleton(ref)}\n${hintFor(ref)}`;
}

export function showPreview(ref: EntityRef, source: string): string {
  const [from, to] = rangeOf(ref);
  const entity = ref.file.source.entities[ref.place];
  const intro = `${head(ref)}\nSource: ${source}`;
  if (entity?.kind === "function") {
    return `${intro}\n${skeletonLine(entity, 0)}\nHint: Search \`${refId(ref)}\` to see the full function code.`;
  }
  if (to - from + 1 <= previewLines) {
    return `${intro}\n${numberedCode(ref.file.source.text, from, to)}\n${hintFor(ref)}`;
  }
  return `${intro}\n${skeleton(ref)}\n${hintFor(ref)}`;
}

/** Signatures, decorators, first lines of documentation and line ranges of what is in it. */
export function skeleton(ref: EntityRef): string {
  const { entities } = ref.file.source;
  const base = ref.place === -1 ? -1 : depthOf(entities, ref.place);
  const own = entities[ref.place];
  const lines = own === undefined ? [] : [skeletonLine(own, 0)];
  let left = 0;
  for (const [place, entity] of entities.entries()) {
    if (place === ref.place || !isInside(entities, place, ref.place)) continue;
    const depth = depthOf(entities, place) - base - (own === undefined ? 1 : 0);
    // What is inside a function is its own matter.
    if (entities[entity.parent]?.kind === "function" && entity.parent !== ref.place) continue;
    if (lines.length >= skeletonEntries) left += 1;
    else lines.push(skeletonLine(entity, depth));
  }
  if (left > 0) lines.push(`... and ${left} more`);
  return lines.join("\n");
}

function skeletonLine(entity: Entity, depth: number): string {
  const indent = "    ".repeat(Math.max(0, depth));
  const decorators = entity.decorators.map((one) => `${indent}${textStart(one, 100)}\n`).join("");
  const doc = entity.doc === "" ? "" : `\n${indent}    """${entity.doc}"""`;
  return `${decorators}${indent}${textStart(entity.signature, 200)}  (lines ${entity.startLine}-${entity.endLine})${doc}`;
}

function depthOf(entities: readonly Entity[], place: number): number {
  let depth = 0;
  for (let at = entities[place]?.parent ?? -1; at !== -1; at = entities[at]?.parent ?? -1) depth += 1;
  return depth;
}

function isInside(entities: readonly Entity[], place: number, around: number): boolean {
  if (around === -1) return true;
  for (let at = entities[place]?.parent ?? -1; at !== -1; at = entities[at]?.parent ?? -1)
    if (at === around) return true;
  return false;
}

/** What an agent may want to know next of it. */
function hintFor(ref: EntityRef): string {
  const { entities } = ref.file.source;
  const id = refId(ref);
  const part = entities.findLast((entity, place) => entity.kind === "function" && isInside(entities, place, ref.place));
  const classPart = entities.find((entity) => entity.kind === "class");
  switch (kindOf(ref)) {
    case "function":
      return `Hint: Search \`${id}\` with relation "invoked_by" to see its callers, or "invokes" for what it calls.`;
    case "class":
      return part === undefined
        ? `Hint: Search \`${id}\` with relation "inherited_by" to see what inherits from it.`
        : `Hint: Search \`${ref.file.source.path}:${part.name}\` to see that method, or \`${id}\` with relation "inherited_by".`;
    default: {
      const example = classPart ?? part;
      return example === undefined
        ? `Hint: Search \`${id}\` with relation "imported_by" to see who uses the file.`
        : `Hint: Search \`${id}:${example.name}\` to see that ${example.kind}, or \`${id}\` with relation "imported_by".`;
    }
  }
}

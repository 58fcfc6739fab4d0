/** The baseline: functions by how many of a description's words `grep -i` finds in them; equal ones in the order of the tree. */
import { type IndexedFile, refId } from "@rolldeck/tools/code-search/indexed-file";

export function grepRanked(files: readonly IndexedFile[], query: string): string[] {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [])];
  const ordered = [...files].sort((a, b) => (a.source.path < b.source.path ? -1 : 1));
  const counted = ordered.flatMap((file) =>
    file.source.entities.flatMap(({ kind, start, end }, place) => {
      if (kind !== "function") return [];
      const text = file.lower.slice(start, end);
      return [{ id: refId({ file, place }), count: words.filter((word) => text.includes(word)).length }];
    }),
  );
  return counted.sort((a, b) => b.count - a.count).map(({ id }) => id);
}

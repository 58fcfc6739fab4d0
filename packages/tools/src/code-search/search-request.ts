/** What the search tool is asked, as it goes to the thread that answers. */
import { z } from "zod";
import { everyFile } from "./path-pattern.ts";
import { relationNames } from "./relation-names.ts";

export const SearchRequest = z.strictObject({
  search_terms: z
    .array(z.string().max(2000))
    .max(20)
    .optional()
    .describe(
      "Names (`Class.method`, `path/file.py:Class.method`), paths, exact code, or a description in words. Each is searched by itself",
    ),
  line_nums: z
    .array(z.int().min(1))
    .max(50)
    .optional()
    .describe("Lines of the one file that file_path_or_pattern names: shows what they are in"),
  file_path_or_pattern: z
    .string()
    .max(1000)
    .default(everyFile)
    .describe("A file, a folder, or a glob such as `**/*.py`, to search in"),
  pattern: z
    .string()
    .max(2000)
    .optional()
    .describe("Code with holes: `$X` stands for one expression, `$$$ARGS` for any number: `open($PATH, $$$REST)`"),
  relation: z
    .enum(relationNames)
    .optional()
    .describe("Instead of the entity itself, what it is related to in that way"),
  depth: z.int().min(1).max(3).optional().describe("Steps of the relation to take; 1 if absent"),
});
export type SearchRequest = z.infer<typeof SearchRequest>;

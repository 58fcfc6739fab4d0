/** How fast the index is made, follows an edit and answers. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { answerSearch } from "@rolldeck/tools/code-search/answer-search";
import { type IndexedFile, indexFile } from "@rolldeck/tools/code-search/indexed-file";
import { RepositoryIndex } from "@rolldeck/tools/code-search/repository-index";
import { RepositoryView } from "@rolldeck/tools/code-search/repository-view";
import { SearchRequest } from "@rolldeck/tools/code-search/search-request";
import { median, quantile } from "../quantile.ts";
import { unpack } from "./debian-source.ts";
import { pythonPaths } from "./python-files.ts";
import type { SearchResult } from "./search-result.ts";

const wantedFiles = 1000;
const names = [
  "HttpResponse",
  "get_queryset",
  "Query.add_filter",
  "django/db/models/query.py",
  "ModelAdmin",
  "check_password",
  "json.decoder",
  "url_for_reslover",
  "HttpRespnse",
  "TestCase.assertRaises",
  "__init__",
  "get_absolute_url",
  "OrderedDict",
];
const texts = [
  "raise ValueError",
  "SELECT COUNT",
  "no such text anywhere in it",
  "password reset email is not sent",
  "parse the header of a multipart request",
  "quadratic time when tags are stripped from a string",
  "cache key with memcached and spaces",
  "convert a timezone aware datetime to the default time zone",
];
/** Keywords are in nearly every file: no file is left out, and hardly any ends the search early. */
const patterns = ["$X if $X else $X", "for $A in $A: $B", "not not $X", "$A[$B] = $A[$C] = $D"];
const literalPatterns = [
  "isinstance($X, HttpResponse)",
  "warnings.warn($$$ARGS)",
  "cursor.execute($SQL, $P)",
  "raise Http404($$$A)",
];

type Speed = Pick<
  SearchResult,
  "files" | "indexS" | "reindexMs" | "queryP95Ms" | "patternP95Ms" | "patternLiteralP95Ms"
>;

export async function measureSpeed(
  sources: readonly string[],
  folder: string,
  progress: (line: string) => void,
): Promise<Speed> {
  const contents = readRepository(sources, folder);
  progress(
    `${contents.length} files, ${(contents.reduce((sum, [, bytes]) => sum + bytes.length, 0) / 1e6).toFixed(1)} MB`,
  );
  // Grammars are loaded once a thread.
  await indexFile("warm.py", Buffer.from("def warm(): pass\n"));
  const start = performance.now();
  const before = process.cpuUsage();
  const files: IndexedFile[] = [];
  for (const [name, bytes] of contents) {
    const file = await indexFile(name, bytes);
    if (file !== null) files.push(file);
  }
  const index = new RepositoryIndex(files);
  const indexS = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  progress(
    `indexed in ${indexS.toFixed(2)} s (${((user + system) / 1e6).toFixed(2)} s of CPU): ${index.documents.length} parts, ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB resident`,
  );
  const view = new RepositoryView(index);
  const reindexMs = await measureReindex(view, contents);
  const timed = (requests: readonly object[], rounds: number) => measureAnswers(view, requests, rounds);
  const queries = await timed(
    [...names, ...texts].map((term) => ({ search_terms: [term] })),
    8,
  );
  const open = await timed(
    patterns.map((pattern) => ({ pattern })),
    2,
  );
  const literal = await timed(
    literalPatterns.map((pattern) => ({ pattern })),
    4,
  );
  progress(`queries ${summary(queries)}; patterns ${summary(open)}; with a literal ${summary(literal)}`);
  return {
    files: files.length,
    indexS: rounded(indexS),
    reindexMs: rounded(reindexMs),
    queryP95Ms: rounded(quantile(queries, 0.95)),
    patternP95Ms: rounded(quantile(open, 0.95)),
    patternLiteralP95Ms: rounded(quantile(literal, 0.95)),
  };
}

/** Django's own package, then the standard library up to 1,000 files. */
function readRepository(sources: readonly string[], folder: string): [name: string, bytes: Buffer][] {
  const django = sources.find((file) => path.basename(file).startsWith("python-django_"));
  if (django === undefined) throw new Error("Django's source is needed");
  const { tree } = unpack(django, path.join(folder, "repository"));
  const library = execFileSync("python3", ["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], {
    encoding: "utf8",
  }).trim();
  const all = [
    ...pythonPaths(path.join(tree, "django")).map(
      (name) => [`django/${name}`, path.join(tree, "django", name)] as const,
    ),
    ...pythonPaths(library)
      .filter((name) => !/(^|\/)(dist|site)-packages\//.test(name))
      .map((name) => [`lib/${name}`, path.join(library, name)] as const),
  ];
  if (all.length < wantedFiles) throw new Error(`only ${all.length} Python files here`);
  return all.slice(0, wantedFiles).map(([name, file]) => [name, readFileSync(file)]);
}

/** A line is added to files of all sizes, the largest among them. */
async function measureReindex(view: RepositoryView, contents: readonly [string, Buffer][]): Promise<number> {
  const bySize = [...contents].sort(([, a], [, b]) => a.length - b.length);
  const times: number[] = [];
  for (let place = 0; place <= 20; place++) {
    const [name, bytes] = bySize[Math.round((place / 20) * (bySize.length - 1))] ?? ["none.py", Buffer.from("")];
    const edited = Buffer.concat([bytes, Buffer.from(`\ndef added_${place}():\n    return ${place}\n`)]);
    const start = performance.now();
    const file = await indexFile(name, edited);
    if (file !== null) view.put(file);
    times.push(performance.now() - start);
    const answer = await ask(view, { search_terms: [`added_${place}`] });
    if (!answer.includes(`${name}:added_${place}`)) throw new Error(`an edit of ${name} is not found`);
  }
  return median(times);
}

async function measureAnswers(view: RepositoryView, requests: readonly object[], rounds: number): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const request of requests) {
      const start = performance.now();
      await ask(view, request);
      times.push(performance.now() - start);
    }
  }
  return times;
}

const ask = (view: RepositoryView, request: object): Promise<string> =>
  answerSearch({ view, root: "/repository", isStopped: () => false }, SearchRequest.parse(request));

const rounded = (value: number): number => Math.round(value * 100) / 100;
const summary = (times: readonly number[]): string =>
  `p50 ${median(times).toFixed(1)} ms, p95 ${quantile(times, 0.95).toFixed(1)} ms, n ${times.length}`;

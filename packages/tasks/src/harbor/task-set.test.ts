import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { InputError } from "@rolldeck/contracts/errors";
import { parquetWriteBuffer } from "hyparquet-writer";
import { pack } from "tar-stream";
import { afterAll, describe, expect, test } from "vitest";
import { harborSet } from "../../testing/harbor/harbor-set.ts";
import { readHarborTask, withoutCanary } from "./harbor-task.ts";
import { packFolder } from "./task-files.ts";
import { openTaskSet } from "./task-set.ts";

const home = mkdtempSync(join(tmpdir(), "harbor-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
let made = 0;

/** Files by name; the folder they are in. */
function write(files: Readonly<Record<string, string>>): string {
  const folder = join(home, `set-${made++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}
const task = (name: string, more: Readonly<Record<string, string>> = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries({
      "task.toml": '[environment]\ndocker_image = "x"\n',
      "instruction.md": `do ${name}`,
      "tests/test.sh": "true",
      ...more,
    }).map(([file, text]) => [name === "" ? file : `${name}/${file}`, text]),
  );

const scene = { variables: {}, cache: () => join(home, "cache") };
const all = { heldOutEvery: 0, include: [], exclude: [] };
const open = (path: string, choice: Partial<typeof all> & { include?: string[]; exclude?: string[] } = {}) =>
  openTaskSet(path, { ...all, ...choice }, scene);
const told = async (work: Promise<unknown>): Promise<string> => {
  const cause = await work.then(
    () => null,
    (error: unknown) => error,
  );
  if (cause instanceof InputError) {
    expect(cause.issues.every(({ path }) => path === "dataset")).toBe(true);
    return cause.issues.map(({ message, fix }) => `${message} / ${fix}`).join("\n");
  }
  throw cause ?? new Error("was taken");
};

describe("a set of Harbor tasks", () => {
  test("the public shapes are read as they are", async () => {
    const { tasks, warnings } = await open(harborSet);
    expect(tasks.train.map(({ name }) => name)).toEqual(["apart", "beside", "old-keys", "tally", "two-steps"]);
    expect(warnings).toEqual(["old-keys/task.toml: environment.mood is not known and has no effect"]);
    const tally = tasks.train.find(({ name }) => name === "tally");
    expect(tally?.instructions[0]).toMatch(/^The file numbers\.txt/);
  });

  test("tasks are in order of their names; every n-th is held out, or folders say it", async () => {
    const names = ["b", "a", "d", "c", "e"];
    const folder = write(Object.assign({}, ...names.map((name) => task(name)), { "readme.md": "x", "notes/x": "y" }));
    const split = async (choice = {}) => {
      const { tasks } = await open(folder, choice);
      return [tasks.train.map(({ name }) => name).join(""), tasks.evaluate.map(({ name }) => name).join("")];
    };
    expect(await split()).toEqual(["abcde", ""]);
    expect(await split({ heldOutEvery: 2 })).toEqual(["ace", "bd"]);
    expect(await split({ heldOutEvery: 1 })).toEqual(["", "abcde"]);
    expect(await split({ include: ["a", "*d*"], exclude: ["[a]"] })).toEqual(["ad", ""]);
    expect(await split({ exclude: ["*"], include: [] }).catch(() => "none")).toBe("none");
    const folders = write({ ...task("train/one"), ...task("evaluate/two"), ...task("elsewhere") });
    const { tasks } = await open(folders, { heldOutEvery: 1 });
    expect([tasks.train.map(({ name }) => name), tasks.evaluate.map(({ name }) => name)]).toEqual([["one"], ["two"]]);
  });

  test("a task's own folder is a set of one", async () => {
    const { tasks } = await open(write(task("")));
    expect(tasks.train).toHaveLength(1);
  });

  test("a task's mark changes with anything that it says, and with nothing else", async () => {
    const folder = write(task("a", { "environment/Dockerfile": "FROM x", "solution/solve.sh": "x", "steps/x/y": "z" }));
    const mark = async () => (await readHarborTask(join(folder, "a"), {})).mark;
    const before = await mark();
    expect(await mark()).toBe(before);
    const copy = join(home, `copy-${made++}`);
    cpSync(join(folder, "a"), join(copy, "a"), { recursive: true });
    expect((await readHarborTask(join(copy, "a"), {})).mark).toBe(before);
    for (const file of [
      "task.toml",
      "instruction.md",
      "tests/test.sh",
      "environment/Dockerfile",
      "solution/solve.sh",
      "steps/x/y",
    ]) {
      const path = join(folder, "a", file);
      const text = readFileSync(path, "utf8");
      writeFileSync(path, `${text}\n# changed`);
      expect(await mark(), file).not.toBe(before);
      writeFileSync(path, text);
      expect(await mark()).toBe(before);
    }
    chmodSync(join(folder, "a/tests/test.sh"), 0o755);
    expect(await mark()).not.toBe(before);
  });

  test("tests that changed after the set was opened are not packed", async () => {
    const folder = write(task("a"));
    const opened = await readHarborTask(join(folder, "a"), {});
    const pack = () => packFolder(join(opened.folder, "tests"), opened.folder, opened.marks.tests);
    expect((await pack())?.length).toBeGreaterThan(0);
    writeFileSync(join(folder, "a/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt");
    await expect(pack()).rejects.toMatchObject({ boundary: "infrastructure", code: "dataset_changed" });
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ["no task at all", { "readme.md": "x" }, /holds no task/],
    [
      "Terminal-Bench 1",
      { "old/task.yaml": "instruction: x" },
      /old\/task\.yaml: is a Terminal-Bench 1 task \/ convert it/,
    ],
    ["no instruction", { "a/task.toml": "", "a/tests/test.sh": "" }, /a holds no instruction\.md/],
    ["an empty instruction", task("a", { "instruction.md": "<!-- canary x -->\n \n" }), /a\/instruction\.md is empty/],
    ["no tests", { "a/task.toml": "", "a/instruction.md": "x" }, /a holds no tests\/test\.sh/],
    [
      "a step without words",
      task("a", { "task.toml": "[[steps]]\nname = 'one'" }),
      /a holds no steps\/one\/instruction\.md/,
    ],
    ["a bad key", task("a", { "task.toml": "[agent]\ntimeout_sec = 'x'" }), /a\/task\.toml: agent\.timeout_sec: /],
    [
      "a variable that no operator listed",
      task("a", { "task.toml": `[verifier.env]\nKEY = '\${OPENAI_API_KEY}'` }),
      /a\/task\.toml: verifier\.env\.KEY: reads OPENAI_API_KEY.*ROLLDECK_TASK_ENV/,
    ],
    [
      "a volume",
      task("a", { "environment/docker-compose.yaml": "services: { main: { volumes: [/:/x] } }" }),
      /a\/environment\/docker-compose\.yaml: services\.main\.volumes/,
    ],
  ])("%s is told by file and key", async (_, files, message) => {
    expect(await told(open(write(files)))).toMatch(message);
  });

  test("several bad tasks are told together", async () => {
    const bad = Object.assign({}, ...Array.from({ length: 30 }, (_, at) => ({ [`t${at}/task.toml`]: "x" })));
    const text = await told(open(write(bad)));
    expect(text.split("\n")).toHaveLength(21);
    expect(text).toMatch(/and 10 more/);
  });

  test("no link leads out of a task or of the set", async () => {
    const outside = write(task("secret"));
    const set = write(task("a"));
    symlinkSync(join(outside, "secret"), join(set, "b"));
    expect(await told(open(set))).toMatch(/b leads out of the data set's folder/);
    for (const file of ["tests/more.txt", "instruction.md", "environment/x"]) {
      const other = write(task("a", { "environment/Dockerfile": "FROM x" }));
      rmSync(join(other, "a", file), { force: true });
      symlinkSync("/etc/hostname", join(other, "a", file));
      expect(await told(open(other)), file).toMatch(/leads out of the task's folder/);
    }
  });

  test("a canary at the top is not for the agent; one in the text is", () => {
    expect(withoutCanary("<!-- canary GUID 1 -->\n# canary 2\n\nDo it.\n# canary 3\n")).toBe("Do it.\n# canary 3\n");
    expect(withoutCanary("# Title\nx")).toBe("# Title\nx");
  });
});

type Files = Readonly<Record<string, string>>;
async function tarOf(files: Files): Promise<Buffer> {
  const writer = pack();
  for (const [name, text] of Object.entries(files)) writer.entry({ name, mode: 0o755 }, text);
  writer.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of writer) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks);
}
function parquet(rows: readonly { path: string; task_binary: Uint8Array }[]): string {
  const file = join(home, `packed-${made++}.parquet`);
  const columnData = [
    { name: "path", data: rows.map(({ path }) => path), type: "STRING" as const },
    { name: "task_binary", data: rows.map((row) => row.task_binary), type: "BYTE_ARRAY" as const },
  ];
  writeFileSync(file, Buffer.from(parquetWriteBuffer({ columnData, rowGroupSize: 2 })));
  return file;
}

describe("a packed set", () => {
  test("is unpacked once, plain or gzipped, with a folder around it or without", async () => {
    const wrapped = Object.fromEntries(Object.entries(task("wrapped")));
    const rows = [
      { path: "org/one", task_binary: await tarOf(task("")) },
      { path: "two", task_binary: gzipSync(await tarOf(task("", { "instruction.md": "other" }))) },
      { path: "three", task_binary: await tarOf(wrapped) },
    ];
    const file = parquet(rows);
    const first = await open(file);
    expect(first.tasks.train.map(({ name }) => name)).toEqual(["one", "two", "three"]);
    expect(first.tasks.train.map(({ instructions }) => instructions[0])).toEqual(["do ", "other", "do wrapped"]);
    const again = await open(file);
    expect(again.tasks.train.map(({ folder, mark }) => [folder, mark])).toEqual(
      first.tasks.train.map(({ folder, mark }) => [folder, mark]),
    );
  });

  test.each<[string, Files, RegExp]>([
    ["a name that leads out", { "../../evil": "x", ...task("") }, /row 1: task_binary: .*leads out/],
    ["an absolute name", { "/evil": "x", ...task("") }, /row 1: task_binary: .*leads out/],
  ])("%s is refused before anything is written", async (_, files, message) => {
    expect(await told(open(parquet([{ path: "a", task_binary: await tarOf(files) }])))).toMatch(message);
  });

  test("what is no packed set is told by column, row and key", async () => {
    const columnData = [{ name: "path", data: ["a"], type: "STRING" as const }];
    const file = join(home, "other.parquet");
    writeFileSync(file, Buffer.from(parquetWriteBuffer({ columnData })));
    expect(await told(open(file))).toMatch(/has no column task_binary/);
    expect(await told(open(parquet([{ path: "..", task_binary: new Uint8Array([1]) }])))).toMatch(/row 1: path/);
    expect(await told(open(parquet([{ path: "a", task_binary: new Uint8Array(700).fill(7) }])))).toMatch(
      /row 1: task_binary: is no readable tar/,
    );
    writeFileSync(join(home, "text.parquet"), "no parquet");
    expect(await told(open(join(home, "text.parquet")))).toMatch(/is no readable Parquet file/);
  });
});

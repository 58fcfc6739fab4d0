/**
 * Files of a repository that a test run is made of, besides tests: what the command of grading executes out of it, the runner it
 * brings itself, plugins and assertion helpers that its tests load. Names alone tell them; facts of the repositories of SWE-bench,
 * SWE-Gym and R2E-Gym. What is under test is not among them, public test clients least of all.
 */

const runners: Readonly<Record<string, RegExp>> = {
  "astropy/astropy": /^astropy\/tests\//u,
  "bokeh/bokeh": /^(?:src\/)?bokeh\/_testing\//u,
  "conan-io/conan": /^conans\/test\//u,
  "dask/dask": /^dask\/utils_test\.py$/u,
  "django/django": /^django\/test\/(?!client\.py$)/u,
  "facebookresearch/hydra": /^hydra\/(?:test_utils\/|extra\/pytest_plugin\.py$)/u,
  "iterative/dvc": /^dvc\/testing\//u,
  "matplotlib/matplotlib": /^(?:lib\/matplotlib\/testing\/|lib\/mpl_toolkits\/tests\/|tests\.py$)/u,
  "modin-project/modin": /^modin\/(?:.*\/)?tests?\//u,
  "mwaskom/seaborn": /^seaborn\/_testing\.py$/u,
  "numpy/numpy": /^(?:numpy\/(?:testing\/|_pytesttester\.py$)|runtests\.py$)/u,
  "pandas-dev/pandas":
    /^pandas\/(?:_testing(?:\/|\.py$)|util\/(?:testing|_test_decorators|_tester)\.py$|testing\.py$)/u,
  "pydata/xarray": /^xarray\/testing(?:\/|\.py$)/u,
  "pylint-dev/pylint": /^pylint\/testutils(?:\/|\.py$)/u,
  "python/mypy": /^(?:mypy\/test\/|mypyc\/test\/|test-data\/|mypyc\/test-data\/|runtests\.py$)/u,
  "scikit-learn/scikit-learn": /^sklearn\/utils\/_?testing\.py$/u,
  "sphinx-doc/sphinx": /^sphinx\/testing\//u,
  "sqlfluff/sqlfluff": /^src\/sqlfluff\/(?:utils\/)?testing\//u,
  "sympy/sympy":
    /^(?:bin\/(?:test|doctest|get_sympy\.py)$|sympy\/testing\/|sympy\/utilities\/(?:runtests|pytest|randtest|tmpfiles)\.py$)/u,
  "tornadoweb/tornado": /^tornado\/test\//u,
};

/** Whether the repository's tests are run or judged by it. @param repo R2E-Gym's have no owner */
export function isRunnerOf(repo: string, path: string): boolean {
  const name = repo.toLowerCase();
  const key = name.includes("/") ? name : Object.keys(runners).find((each) => each.endsWith(`/${name}`));
  if (key === undefined || !Object.hasOwn(runners, key)) return false;
  return runners[key]?.test(path) ?? false;
}

const interpreters = /^(?:python[\d.]*|bash|sh|dash|perl|node|ruby)$/u;
/** What a tool reads its own orders from. */
const orders: Readonly<Record<string, readonly string[]>> = {
  make: ["Makefile", "makefile", "GNUmakefile"],
  nox: ["noxfile.py"],
  tox: ["tox.ini"],
};

/**
 * Files that a command of the shell executes, where they are in the repository: the program itself, or what an interpreter is
 * given. What it is given to test is not among them.
 */
export function executedFiles(command: string): ReadonlySet<string> {
  const files = new Set<string>();
  let folder: string[] = [];
  for (const part of command.split(/&&|\|\||[;|\n()]/u)) {
    const words = part
      .trim()
      .split(/\s+/u)
      .map((word) => word.replaceAll(/^["']|["']$/gu, ""));
    const program = words.findIndex((word) => !/^\w+=/u.test(word) && word !== "exec" && word !== "env");
    const [name = "", ...rest] = words.slice(program);
    if (name === "cd") {
      folder = resolved([], rest[0] ?? "");
      continue;
    }
    const tool = name.slice(name.lastIndexOf("/") + 1);
    for (const file of orders[tool] ?? []) files.add([...folder, file].join("/"));
    // A bare name is looked for in PATH.
    const script = interpreters.test(tool) ? scriptOf(rest) : name.includes("/") ? name : null;
    if (script !== null) files.add(resolved(folder, script).join("/"));
  }
  return files;
}

/** Null where the interpreter is told what to run in another way. */
function scriptOf(words: readonly string[]): string | null {
  for (const [at, word] of words.entries()) {
    if (/^-[a-zA-Z]*[mc]$/u.test(word)) return null;
    const isOptions = /^-[WX]$/u.test(words[at - 1] ?? "");
    if (!word.startsWith("-") && !isOptions) return word;
  }
  return null;
}

/** An absolute folder is the repository's own. */
function resolved(folder: readonly string[], path: string): string[] {
  const parts = path.startsWith("/") ? [] : [...folder];
  for (const part of path.replace(/^\/(?:testbed\/?)?/u, "").split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts;
}

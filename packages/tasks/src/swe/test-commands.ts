/**
 * How the tests of well-known repositories are run and read, for rows of SWE-bench and SWE-Gym that bring no script of their own.
 * Facts of those data sets: their lists of tests were made with these commands and parsers.
 */
import type { LogParserName } from "./logs/log-parsers.ts";

export interface TestCommand {
  readonly command: string;
  readonly parser: LogParserName;
  /** Run before the tests: what the patch changed takes effect. */
  readonly install: string | null;
  /** Lines of shell before everything else. */
  readonly before: readonly string[];
  /** How test files are named to the command. */
  readonly names: "paths" | "modules" | "cases";
}

type Entry = Partial<TestCommand> &
  Pick<TestCommand, "command"> & { readonly versions?: Readonly<Record<string, Partial<TestCommand>>> };

const editable = "python -m pip install -e .";
const pytest = "pytest -rA";
const each = (versions: string, change: Partial<TestCommand>): Record<string, Partial<TestCommand>> =>
  Object.fromEntries(versions.split(" ").map((version) => [version, change]));

const english = ["export LANG=en_US.UTF-8", "export LC_ALL=en_US.UTF-8", "export LANGUAGE=en_US:en"];
// biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own
const localPath = ["export PYTHONPATH=${PYTHONPATH:-}:$(pwd)"];

const repositories: Readonly<Record<string, Entry>> = {
  "astropy/astropy": {
    command: pytest,
    parser: "pytest_v2",
    install: "python -m pip install -e .[test] --verbose",
    versions: each("0.1 0.2 0.3 0.4 1.1 1.2 1.3", {
      command: "pytest -rA -vv -o console_output_style=classic --tb=no",
    }),
  },
  "django/django": {
    command: "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    parser: "django",
    names: "modules",
    versions: {
      ...each("1.4 1.5 1.6", { install: "python setup.py install" }),
      ...each("1.7 1.8 1.9 1.10 1.11 2.0 2.1 2.2", {
        install: "python setup.py install",
        before: [...english, "export PYTHONIOENCODING=utf8"],
      }),
      "1.9": {
        command: "./tests/runtests.py --verbosity 2",
        install: "python setup.py install",
        before: [...english, "export PYTHONIOENCODING=utf8"],
      },
      ...each("3.0 3.1 3.2", {
        before: ["sed -i '/en_US.UTF-8/s/^# //g' /etc/locale.gen && locale-gen", ...english],
      }),
    },
  },
  "marshmallow-code/marshmallow": { command: pytest, install: "python -m pip install -e '.[dev]'" },
  "matplotlib/matplotlib": {
    command: pytest,
    parser: "matplotlib",
    versions: {
      ...each("1.0 1.1 1.2 1.3 1.4 1.5 2.0 2.1 2.2", { install: "python setup.py build; python setup.py install" }),
      ...each("3.8 3.9", { install: 'python -m pip install --no-build-isolation -e ".[dev]"' }),
    },
  },
  "mwaskom/seaborn": {
    command: "pytest --no-header -rA",
    parser: "seaborn",
    versions: each("0.12 0.13 0.14", { install: "python -m pip install -e .[dev]" }),
  },
  "pallets/flask": { command: pytest },
  "psf/requests": { command: pytest, parser: "pytest_options", install: "python -m pip install ." },
  "pvlib/pvlib-python": { command: pytest, install: "python -m pip install -e .[all]" },
  "pydata/xarray": { command: pytest },
  "pydicom/pydicom": { command: pytest, parser: "pytest_options" },
  "pylint-dev/astroid": { command: pytest },
  "pylint-dev/pylint": { command: pytest, parser: "pytest_options" },
  "pytest-dev/pytest": { command: pytest },
  "pyvista/pyvista": { command: pytest },
  "scikit-learn/scikit-learn": {
    command: pytest,
    parser: "pytest_v2",
    install: "python -m pip install -v --no-use-pep517 --no-build-isolation -e .",
  },
  "sphinx-doc/sphinx": {
    command: "tox --current-env -epy39 -v --",
    parser: "pytest_v2",
    install: "python -m pip install -e .[test]",
  },
  "sqlfluff/sqlfluff": { command: pytest },
  "sympy/sympy": {
    command: "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
    parser: "sympy",
  },
  // SWE-Gym: its images are installed for good, so nothing is installed again.
  "bokeh/bokeh": { command: "pytest -rA -n0", install: null },
  "conan-io/conan": { command: "pytest -n0 -rA", install: null, before: localPath },
  "dask/dask": { command: "pytest -n0 -rA --color=no", install: null },
  "facebookresearch/hydra": { command: "pytest -rA --tb=long", install: null },
  "getmoto/moto": { command: "pytest -n0 -rA", install: null },
  "iterative/dvc": { command: pytest, install: null },
  "modin-project/modin": { command: "pytest -n0 -rA", install: null },
  "pandas-dev/pandas": { command: "pytest -rA --tb=long", install: null },
  "project-monai/monai": { command: pytest, install: null },
  "pydantic/pydantic": {
    command: "pytest -rA --tb=short -vv -o console_output_style=classic --no-header",
    parser: "pydantic",
    install: null,
  },
  "python/mypy": {
    command: "pytest -n0 -rA -k",
    names: "cases",
    install: null,
    versions: each("1.7 1.8 1.9 1.10 1.11", { command: "pytest -rA -k" }),
  },
};

/** Repositories of SWE-Gym, whose images have another name. */
const gym = new Set([
  "bokeh/bokeh",
  "conan-io/conan",
  "dask/dask",
  "facebookresearch/hydra",
  "getmoto/moto",
  "iterative/dvc",
  "modin-project/modin",
  "pandas-dev/pandas",
  "project-monai/monai",
  "pydantic/pydantic",
  "python/mypy",
]);

export const isGymRepository = (repo: string): boolean => gym.has(repo.toLowerCase());

/** Null for a repository that is not here. @param version as the row has it */
export function testCommandOf(repo: string, version: string | null): TestCommand | null {
  const key = repo.toLowerCase();
  const entry = Object.hasOwn(repositories, key) ? repositories[key] : undefined;
  if (entry === undefined) return null;
  const { versions = {}, ...base } = entry;
  const own = version !== null && Object.hasOwn(versions, version) ? versions[version] : {};
  return { parser: "pytest", install: editable, before: [], names: "paths", ...base, ...own };
}

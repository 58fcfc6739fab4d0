import { describe, expect, test } from "vitest";
import { executedFiles, isRunnerOf } from "./runner-files.ts";

describe("the runner of a repository", () => {
  test.each([
    ["sympy/sympy", "bin/test", true],
    ["sympy/sympy", "sympy/testing/runtests.py", true],
    ["sympy/sympy", "sympy/utilities/runtests.py", true],
    ["sympy", "sympy/testing/runtests.py", true],
    ["sympy/sympy", "sympy/core/expr.py", false],
    ["django/django", "django/test/runner.py", true],
    ["django/django", "django/test/utils.py", true],
    ["Django/django", "django/test/testcases.py", true],
    ["django/django", "django/test/client.py", false],
    ["django/django", "django/db/models/query.py", false],
    ["matplotlib/matplotlib", "lib/matplotlib/testing/compare.py", true],
    ["sphinx-doc/sphinx", "sphinx/testing/fixtures.py", true],
    ["scikit-learn/scikit-learn", "sklearn/utils/_testing.py", true],
    ["scikit-learn/scikit-learn", "sklearn/utils/estimator_checks.py", false],
    ["pandas-dev/pandas", "pandas/_testing/asserters.py", true],
    ["pandas", "pandas/util/testing.py", true],
    ["python/mypy", "test-data/unit/check-basic.test", true],
    ["python/mypy", "mypy/test/data.py", true],
    ["python/mypy", "mypy/checker.py", false],
    ["iterative/dvc", "dvc/testing/fixtures.py", true],
    ["conan-io/conan", "conans/test/utils/tools.py", true],
    ["modin-project/modin", "modin/pandas/test/utils.py", true],
    ["pydata/xarray", "xarray/testing.py", true],
    ["pylint-dev/pylint", "pylint/testutils/functional_test_file.py", true],
    ["pytest-dev/pytest", "src/_pytest/assertion/rewrite.py", false],
    ["pallets/flask", "src/flask/testing.py", false],
    ["other/sympy", "sympy/testing/runtests.py", false],
    ["constructor", "constructor", false],
  ])("of %s has %s: %s", (repo, path, expected) => {
    expect(isRunnerOf(repo, path)).toBe(expected);
  });
});

describe("a command executes", () => {
  test.each([
    ["PYTHONWARNINGS='ignore::UserWarning' bin/test -C --verbose sympy/core/tests/test_expr.py", ["bin/test"]],
    ["./tests/runtests.py --verbosity 2 admin_views.tests", ["tests/runtests.py"]],
    ["cd tests && PYTHONPATH=.. python3 runtests.py --parallel 1 aggregation", ["tests/runtests.py"]],
    ["cd /testbed/tests; python -W ignore ../tools/run.py x", ["tools/run.py"]],
    ["( bash -e ./ci/test.sh ) 2>&1", ["ci/test.sh"]],
    ["make test", ["GNUmakefile", "Makefile", "makefile"]],
    ["tox --current-env -epy39 -v -- tests/test_a.py", ["tox.ini"]],
    ["pytest -rA --doctest-modules src/a.py", []],
    ["python3 -m pytest -rA tests/test_a.py", []],
    ["python -c 'import a'", []],
    ["", []],
  ])("%s", (command, files) => {
    expect([...executedFiles(command)].sort()).toEqual(files);
  });
});

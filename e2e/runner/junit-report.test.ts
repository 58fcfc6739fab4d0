import { expect, test } from "vitest";
import { resultOfJunit } from "./junit-report.ts";

/** As pytest 9 wrote it for five tests, shortened where nothing reads it. */
const written = `<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1"
 skipped="1" tests="5"><testcase classname="test_x" name="test_right" time="0.001" /><testcase classname="test_x"
 name="test_wrong" time="0.001"><failure message="AssertionError: an &lt;odd&gt; &amp; &quot;quoted&quot; piece&#10;assert {'a': 1} == {'a': 2}">def test_wrong():
&gt;       assert pieces == {"a": 2}
test_x.py:5: AssertionError</failure></testcase><testcase classname="test_x" name="test_left" time="0.000"><skipped
 type="pytest.skip" message="no GPU &amp; no time">/x/test_x.py:6: no GPU &amp; no time</skipped></testcase><testcase classname="test_x"
 name="test_error" time="0.000"><error message="failed on setup with &quot;RuntimeError: no server&quot;">E   RuntimeError: no server
</error></testcase><testcase classname="test_x" name="test_param[a&gt;b]" time="0.000" /></testsuite></testsuites>`;

test("what passed is counted, what failed is told with its message and what was skipped with its reason", () => {
  expect(resultOfJunit(written)).toEqual({
    passed: 2,
    failed: 2,
    failures: [
      {
        name: "pytest: test_wrong",
        message: "AssertionError: an <odd> & \"quoted\" piece\nassert {'a': 1} == {'a': 2}",
      },
      { name: "pytest: test_error", message: 'failed on setup with "RuntimeError: no server"' },
    ],
    skipped: [{ name: "pytest: test_left", reason: "no GPU & no time" }],
  });
});

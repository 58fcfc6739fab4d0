import { describe, expect, it } from "vitest";
import { plain, table } from "./output.ts";

describe("output", () => {
  it("aligns columns, numbers to the right, missing as n/a", () => {
    expect(
      table(
        ["run", "reward"],
        [
          ["a", 0.12345],
          ["bcd", null],
        ],
      ),
    ).toBe("run  reward\na     0.123\nbcd     n/a");
  });

  it("lets no control sequence reach the terminal", () => {
    expect(plain("a\u001b[2Jb\u0007\tc\n")).toBe("a\u2400[2Jb\u2400\tc\n");
  });
});

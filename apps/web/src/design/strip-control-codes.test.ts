import { expect, test } from "vitest";
import { stripControlCodes } from "./strip-control-codes.ts";

test("colours, cursor moves and titles go; a progress line keeps its last state", () => {
  expect(stripControlCodes("get 10%\rget 55%\rget 100%\n\u001b[31mred\u001b[0m \u001b[2Kx\u001b]0;title\u0007\n")).toBe(
    "get 100%\nred x\n",
  );
});

test("line ends of Windows stay line ends; an unfinished sequence leaves nothing behind", () => {
  expect(stripControlCodes("a\r\nb")).toBe("a\nb");
  expect(stripControlCodes("a\u001b[3")).toBe("a");
  expect(stripControlCodes("a\u0000b\u009b31mc")).toBe("ab31mc");
});

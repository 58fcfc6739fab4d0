import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { terminalText } from "./terminal-text.ts";

describe("terminalText", () => {
  it.each([
    ["get 10%\rget 55%\rget 100%\n\u001b[31mred\u001b[0m \u001b[2Kx\u001b]0;title\u0007\n", "get 100%\nred x\n"],
    ["downloading 99%\r\u001b[Kdone", "done"],
    ["downloading 99%\u001b[2K\u001b[1Gdone", "done"],
    ["downloading 99%\r\u001b[2Kdone\r", "done"],
    ["abc\rX", "Xbc"],
    ["100\r 99", " 99"],
    ["N\bNA\bAM\bME\bE", "NAME"],
    ["_\bx\b\b\b\by", "y"],
    ["abc\b\b\u001b[K", "a"],
    ["a\r\r\nb\r\n", "a\r\nb\r\n"],
    ["tail\r", "tail"],
    ["\u009b31mred\u009b0m", "red"],
    ["\u009d0;title\u009cx", "x"],
    ["\u0090q#0\u009cx\u0085", "x\ufffd"],
    ["\u001b(Bx\u001b=y\u001bM", "xy"],
    ["cut \u001b", "cut "],
    ["cut \u001b[", "cut "],
    ["cut \u001b[38;5;1", "cut "],
    ["cut \u009b38;", "cut "],
    ["\u001b[31é", "é"],
    ["\u001b]0;a\nnext\u0007", "0;a\nnext\ufffd"],
    ["\u001b[38;2;1;2;3mtrue\u001b[0;1;4m colour\u001b[?25l", "true colour"],
    ["x\u001b[3D\u001b[Ay", "xy"],
    ["caf\u00e9\r\u4f60\u597d\u{1f642}", "\u4f60\u597d\u{1f642}\u00e9"],
  ])("%j", (output, text) => {
    expect(terminalText(output)).toBe(text);
  });

  const word = fc.stringMatching(/^[a-z\u00e9\u4f60 %0-9]{0,12}$/u);

  it("leaves text without codes as it is", () => {
    fc.assert(
      fc.property(fc.array(word), (lines) => {
        expect(terminalText(lines.join("\r\n"))).toBe(lines.join("\r\n"));
      }),
    );
  });

  it("shows the last of the states that a line went through", () => {
    const states = fc.array(word, { minLength: 1, maxLength: 8 });
    const clears = fc.constantFrom("\r\u001b[K", "\r\u001b[2K", "\u001b[2K\r", "\u001b[2K\u001b[1G", "\r\u009bK");
    fc.assert(
      fc.property(states, clears, (all, clear) => {
        expect(terminalText(all.join(clear))).toBe(all.at(-1));
      }),
    );
  });

  it("finds codes wherever they stand between letters", () => {
    const codes = ["\u001b[1m", "\u009b4;31m", "\u001b]8;;u\u0007", "\u001bPx\u001b\\", "\u001b(0", "\u001b7"];
    fc.assert(
      fc.property(fc.array(fc.tuple(word, fc.constantFrom(...codes))), (parts) => {
        expect(terminalText(parts.flat().join(""))).toBe(parts.map(([text]) => text).join(""));
      }),
    );
  });

  it("is done after one pass, even over what opens and never closes", () => {
    for (const opening of ["\u001b]", "\u001bP", "\u009d", "\u001b[", "\u001b[1;", "\r\u001b[2K"]) {
      const text = `${opening}a`.repeat(100_000);
      expect(terminalText(text).length).toBeLessThanOrEqual(text.length);
    }
  });
});

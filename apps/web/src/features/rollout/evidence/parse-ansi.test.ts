import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAnsi, plainStyle } from "./parse-ansi.ts";

const esc = "\u001b";
const texts = (text: string) => parseAnsi(text).lines.map((line) => line.text);

describe("parseAnsi", () => {
  it("reads colours and weights, over the end of a line too", () => {
    const { lines } = parseAnsi(`${esc}[1;31mFAILED${esc}[0m a\nb ${esc}[92mgreen\nstill${esc}[39m not`);
    expect(lines[0]?.spans).toEqual([
      { text: "FAILED", style: { ...plainStyle, bold: true, colour: 1 } },
      { text: " a", style: plainStyle },
    ]);
    expect(lines[2]?.spans).toEqual([
      { text: "still", style: { ...plainStyle, colour: 10 } },
      { text: " not", style: plainStyle },
    ]);
    expect(parseAnsi("plain\n").lines).toEqual([{ text: "plain", spans: null }]);
  });

  it("reads 256 colours and all of them, and what is no colour is none", () => {
    const colours = (codes: string) => parseAnsi(`${esc}[${codes}mx`).lines[0]?.spans?.[0]?.style ?? null;
    expect(colours("38;5;9")?.colour).toBe(9);
    expect(colours("38;5;196")?.colour).toBe("rgb(255 0 0)");
    expect(colours("48;5;244")?.background).toBe("rgb(128 128 128)");
    expect(colours("38;2;1;2;999;4")).toMatchObject({ colour: "rgb(1 2 255)", underline: true });
    expect(colours("38;7")).toBeNull();
    expect(colours("7;100")).toMatchObject({ inverse: true, background: 8 });
  });

  it("drops what would move, ask, name or ring", () => {
    expect(
      texts(`a${esc}[2Jb${esc}]0;title\u0007c${esc}]8;;http://x${esc}\\d${esc}Pq${esc}\\e\u0007\u009bf${esc}(Bg${esc}`),
    ).toEqual(["abcdefg"]);
  });

  it("keeps the last state of a line that was written anew", () => {
    expect(texts("10 %\r50 %\r100 %\r\nnext\r")).toEqual(["100 %", "next"]);
    expect(texts(`a\r${esc}[32mb`)).toEqual(["b"]);
    expect(texts(`a\r\r\r\nb${"\r".repeat(500_000)}c`)).toEqual(["a", "c"]);
  });

  it("never lets a control character through, whatever comes", () => {
    const piece = fc.oneof(
      fc.constantFrom(esc, `${esc}[`, `${esc}]`, `${esc}P`, "m", "31", ";", "\r", "\n", "\u0007", "\u009b"),
      fc.string({ unit: "binary", maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        for (const line of parseAnsi(pieces.join("")).lines) {
          // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be gone
          expect(line.text).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/);
          if (line.spans) expect(line.spans.map((span) => span.text).join("")).toBe(line.text);
        }
      }),
      { numRuns: 500 },
    );
  });
});

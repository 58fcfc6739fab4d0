import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { InputError, NotFoundError } from "@rolldeck/contracts/errors";
import type { Tokenizer } from "@rolldeck/contracts/ports/tokenizer";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { quickstartFolder } from "../../testing/scripted-rollout.ts";
import { observationTokens } from "../core/render-conversation.ts";
import { loadTokenizer } from "./load-tokenizer.ts";
import { resolveModel } from "./resolve-model.ts";

let tokenizer: Tokenizer;
let scratch: string;
beforeAll(async () => {
  tokenizer = await loadTokenizer(quickstartFolder());
  scratch = await mkdtemp(join(tmpdir(), "rolldeck-models-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const [user, assistant, tool, end] = [256, 257, 258, 259];
const utf8 = (text: string) => [...new TextEncoder().encode(text)];

describe("the quickstart tokenizer", () => {
  it("knows its sizes and end token", () => {
    expect(tokenizer.vocabSize).toBe(260);
    expect(tokenizer.stopTokens).toEqual([259]);
  });
  it("round-trips every Unicode string, one token a byte", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc.constantFrom("\ufeff", " a", "\ufffd"),
    );
    fc.assert(
      fc.property(text, (written) => {
        const tokens = tokenizer.encode(written);
        expect(tokens).toEqual(utf8(written));
        expect(tokenizer.decode(tokens)).toBe(written.replace(/\p{Surrogate}/gu, "\ufffd"));
      }),
      { numRuns: 300 },
    );
  });
  it("decodes every byte sequence, and shows each token's exact bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const tokens = [...bytes];
        expect(tokenizer.decode(tokens)).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
        const shown = tokenizer.tokenTexts(tokens).map((text) => {
          const hex = /^<0x([0-9A-F]{2})>$/.exec(text)?.[1];
          return hex === undefined ? (utf8(text)[0] ?? -1) : Number.parseInt(hex, 16);
        });
        expect(shown).toEqual(tokens);
      }),
      { numRuns: 300 },
    );
  });
  it("names special tokens, and survives ids that no token has", () => {
    expect(tokenizer.tokenTexts([256, 65, 259, 999])).toEqual(["<|user|>", "A", "<|end|>", "\ufffd"]);
    expect(tokenizer.decode([256, 65, 999, 66, 259])).toBe("<|user|>A\ufffdB<|end|>");
    expect(tokenizer.decode([256, 65, 259], { skipSpecial: true })).toBe("A");
    expect(tokenizer.decode([])).toBe("");
    expect(tokenizer.encode("")).toEqual([]);
  });
  it("renders a conversation by its template", () => {
    const messages = [
      { role: "system" as const, content: "s" },
      { role: "user" as const, content: "find a" },
      { role: "assistant" as const, content: "" },
      { role: "tool" as const, content: "b\n" },
    ];
    expect(tokenizer.render(messages, { generationPrompt: true })).toEqual(
      [user, ...utf8("s"), end, user, ...utf8("find a"), end, assistant, end, tool, ...utf8("b\n"), end, assistant].map(
        Number,
      ),
    );
    // Fault 11: an empty message is empty, not a word.
    expect(tokenizer.decode(tokenizer.render(messages, { generationPrompt: false }))).not.toMatch(
      /None|null|undefined/,
    );
  });
  it("lets no content write a special token", () => {
    const special = fc.constantFrom(
      "<|user|>",
      "<|assistant|>",
      "<|tool|>",
      "<|end|>",
      "\ue000",
      "\ue001",
      "0",
      "1",
      "x",
      "<|",
    );
    const content = fc.array(special, { maxLength: 8 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(fc.array(content, { minLength: 1, maxLength: 4 }), (contents) => {
        const messages = contents.map((text) => ({ role: "user" as const, content: text }));
        const tokens = tokenizer.render(messages, { generationPrompt: false });
        expect(tokens).toEqual(contents.flatMap((text) => [256, ...utf8(text), 259]));
      }),
    );
  });
});

describe("observations", () => {
  const chatml =
    "{% for m in messages %}{{ '<|user|>' + m.role + '\\n' + m.content + '<|end|>' + '\\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|user|>assistant\\n' }}{% endif %}";
  it("hold exactly what the template puts between two samples, the glue included (fault 15)", async () => {
    const folder = await variant("chatml", { "chat_template.jinja": chatml });
    const glued = await loadTokenizer(folder);
    const tokens = observationTokens(glued, [{ role: "tool", content: "ok" }]);
    expect(glued.decode(tokens)).toBe("\n<|user|>tool\nok<|end|>\n<|user|>assistant\n");
    const whole = glued.render(
      [
        { role: "user", content: "q" },
        { role: "assistant", content: "call" },
        { role: "tool", content: "ok" },
      ],
      { generationPrompt: true },
    );
    expect(whole.slice(-tokens.length)).toEqual(tokens);
  });
  it("work for a template that writes the last assistant turn otherwise", async () => {
    const template = chatml.replace(
      "m.content",
      "('<think></think>' if loop.last and m.role == 'assistant' else '') + m.content",
    );
    const thinking = await loadTokenizer(await variant("thinking", { "chat_template.jinja": template }));
    const tokens = observationTokens(thinking, [{ role: "tool", content: "ok" }]);
    expect(thinking.decode(tokens)).toBe("\n<|user|>tool\nok<|end|>\n<|user|>assistant\n");
  });
});

async function variant(name: string, files: Record<string, string | null>): Promise<string> {
  const folder = join(scratch, name);
  await cp(quickstartFolder(), folder, { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    if (content === null) await rm(join(folder, file));
    else await writeFile(join(folder, file), content);
  }
  return folder;
}

describe("loadTokenizer", () => {
  it("takes the template from tokenizer_config.json, and more end tokens from generation_config.json", async () => {
    const config = JSON.parse(await readFile(join(quickstartFolder(), "tokenizer_config.json"), "utf8"));
    const folder = await variant("inline", {
      "chat_template.jinja": null,
      "tokenizer_config.json": JSON.stringify({
        ...config,
        eos_token: { content: "<|end|>" },
        chat_template: [{ name: "default", template: "{{ eos_token }}{{ messages[0].content }}" }],
      }),
      "generation_config.json": JSON.stringify({ eos_token_id: [259, 256] }),
    });
    const loaded = await loadTokenizer(folder);
    expect(loaded.stopTokens).toEqual([259, 256]);
    expect(loaded.render([{ role: "user", content: "A" }], { generationPrompt: false })).toEqual([259, 65]);
  });
  it.each([
    ["tokenizer.json", null, /tokenizer.json is missing/],
    ["tokenizer.json", "{", /tokenizer.json is not what a tokenizer needs/],
    ["chat_template.jinja", null, /chat_template.jinja is missing/],
    ["chat_template.jinja", "{% for %}", /can't be built/],
  ])("names a broken %s", async (file, content, message) => {
    const folder = await variant(`broken-${file}-${content?.length ?? 0}`, { [file]: content });
    await expect(loadTokenizer(folder)).rejects.toMatchObject({
      boundary: "infrastructure",
      message: expect.stringMatching(message),
    });
  });
});

describe("resolveModel", () => {
  it("finds a model in the first root that has it, and refuses paths and links that lead out", async () => {
    const roots = [join(scratch, "absent"), join(scratch, "one"), join(scratch, "two")];
    for (const folder of ["one/a", "two/a", "two/org/b", "outside", "one-more"]) {
      await mkdir(join(scratch, folder), { recursive: true });
    }
    await writeFile(join(scratch, "one/file"), "");
    await symlink(join(scratch, "outside"), join(scratch, "one/leak"));
    await symlink(join(scratch, "one/a"), join(scratch, "one/alias"));
    const real = dirname(resolveModel("a", roots));
    expect(real.endsWith("one")).toBe(true);
    expect(resolveModel("org/b", roots).endsWith("two/org/b")).toBe(true);
    expect(resolveModel("alias", roots).endsWith("one/a")).toBe(true);
    const refused = [
      "",
      "..",
      "../one-more",
      "a/../../outside",
      "/etc",
      "a/",
      "./a",
      ".hidden",
      "a//b",
      "a\\b",
      "a\u0000",
      "leak",
      "a b",
    ];
    for (const name of refused) expect(() => resolveModel(name, roots)).toThrow(InputError);
    for (const name of ["none", "file", "org/none"]) expect(() => resolveModel(name, roots)).toThrow(NotFoundError);
  });
});

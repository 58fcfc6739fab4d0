import { fileURLToPath } from "node:url";
import { loadTokenizer } from "@rolldeck/agent/io/load-tokenizer";
import { InputError } from "@rolldeck/contracts/errors";
import { beforeEach, expect, it } from "vitest";
import { ModelTokenizers } from "./model-tokenizers.ts";

const folder = fileURLToPath(new URL("../../../infra/models/quickstart", import.meta.url));
const templates: Record<string, string> = {
  shout: "{% for m in messages %}{{ m.content | upper }}<|end|>{% endfor %}",
  think: "{{ enable_thinking is defined and enable_thinking }}",
};
let loads: string[];
let tokenizers: ModelTokenizers;
beforeEach(() => {
  loads = [];
  tokenizers = new ModelTokenizers({
    resolve: () => folder,
    template: async (name) => {
      const text = templates[name];
      if (text === undefined) throw new InputError([{ path: "model.chatTemplate", message: `no template ${name}` }]);
      return text;
    },
    load: (path, options) => {
      loads.push(`${options.template ?? "own"} ${options.thinking}`);
      return loadTokenizer(path, options);
    },
  });
});
const model = (chatTemplate: string | null = null, thinking: boolean | null = null) => ({
  name: "quickstart",
  chatTemplate,
  thinking,
});
const messages = [{ role: "user" as const, content: "hi" }];

it("loads each model, template and thinking once", async () => {
  const own = await tokenizers.load(model());
  const shout = await tokenizers.load(model("shout"));
  expect(await tokenizers.load(model("shout"))).toBe(shout);
  expect(own.decode(own.render(messages, { generationPrompt: false }))).toBe("<|user|>hi<|end|>");
  expect(shout.decode(shout.render(messages, { generationPrompt: false }))).toBe("HI<|end|>");
  for (const [thinking, shown] of [
    [null, "False"],
    [false, "False"],
    [true, "True"],
  ] as const) {
    const tokenizer = await tokenizers.load(model("think", thinking));
    expect(tokenizer.decode(tokenizer.render(messages, { generationPrompt: false }))).toBe(shown);
  }
  expect(loads).toHaveLength(5);
});
it("hashes what decides the text: warm starts of other templates are others", async () => {
  const hashes = await Promise.all(
    [model(), model("shout"), model("think"), model("think", true), model("think", false)].map((each) =>
      tokenizers.contentHash(each),
    ),
  );
  expect(new Set(hashes).size).toBe(hashes.length);
  expect(await tokenizers.contentHash(model())).toBe(hashes[0]);
});
it("does not keep a failure", async () => {
  await expect(tokenizers.load(model("late"))).rejects.toThrow(InputError);
  templates.late = "late";
  const late = await tokenizers.load(model("late"));
  expect(late.decode(late.render(messages, { generationPrompt: false }))).toBe("late");
});

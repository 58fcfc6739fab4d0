import type { ToolSpec } from "@rolldeck/contracts/ports/dialect";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { codeBlocks } from "./code-blocks.ts";

const tool = (name: string): ToolSpec => ({ name, description: `does ${name}`, parameters: { type: "object" } });
const tools = [tool("bash"), tool("submit"), tool("finish"), tool("get")];
const read = (text: string, among: readonly ToolSpec[] = tools) => {
  const { calls, error, content, reasoning, repairs } = codeBlocks.parse(text, among);
  return { calls: calls.map(({ name, arguments: args }) => [name, args]), error, content, reasoning, repairs };
};
const bash = (command: string) => ["bash", { command }];
const fenced = (language: string, content: string, fence = "```") => `${fence}${language}\n${content}\n${fence}`;

describe("blocks of code", () => {
  it("reads a thought and a block", () => {
    const text = `<think>hm</think>THOUGHT: look first\n\n${fenced("bash", "ls -la\ncd /x && pwd")}\n`;
    expect(read(text)).toEqual({
      ...{ calls: [bash("ls -la\ncd /x && pwd")], error: null, repairs: [] },
      ...{ content: "THOUGHT: look first", reasoning: "hm" },
    });
  });

  it.each(["bash", "sh", "shell", "Bash", "bash title=x", "mswea_bash_command"])(
    "%j is a shell's language",
    (language) => {
      expect(read(fenced(language, "ls")).calls).toEqual([bash("ls")]);
    },
  );

  it("calls the shell by the name that the task's tool has", () => {
    expect(read(fenced("bash", "ls"), [tool("execute_bash")]).calls).toEqual([["execute_bash", { command: "ls" }]]);
    expect(read(fenced("bash", "ls"), []).calls).toEqual([bash("ls")]);
  });

  it("runs Python through the shell, with an end that the code does not hold", () => {
    expect(read(fenced("python", "print(1)\nPYTHON\nPYTHON_")).calls).toEqual([
      bash("python3 - <<'PYTHON__'\nprint(1)\nPYTHON\nPYTHON_\nPYTHON__"),
    ]);
  });

  it.each(["text", "json", "diff", "", "bash_output", "markdown"])("a %j block is content", (language) => {
    const text = fenced(language, "rm -rf /");
    expect(read(text)).toMatchObject({ calls: [], error: null, content: text });
  });

  it("what a longer fence quotes is content", () => {
    const text = fenced("markdown", fenced("bash", "rm -rf /"), "````");
    expect(read(`${text}\n${fenced("bash", "ls")}`)).toMatchObject({ calls: [bash("ls")], content: text });
  });

  it("fences of tildes, longer fences and indented ones", () => {
    expect(read(fenced("bash", "echo '```'\n```\n", "~~~")).calls).toEqual([bash("echo '```'\n```\n")]);
    expect(read(fenced("bash", "```\nx\n```", "````")).calls).toEqual([bash("```\nx\n```")]);
    expect(read("1. so:\n   ```bash\n   ls\n     -x\n   ```").calls).toEqual([bash("ls\n  -x")]);
  });

  it("a fence inside a here-document is text of the command", () => {
    const command =
      "cat > README.md <<'EOF'\n# x\n```bash\npip install x\n```\nEOF\ncat <<-END\n```\n\tEND\necho $((1 << n))";
    expect(read(`words\n${fenced("bash", command)}\nmore`)).toMatchObject({ calls: [bash(command)], error: null });
    const written = command.slice(0, command.lastIndexOf("\n"));
    expect(codeBlocks.renderCalls([{ name: "bash", arguments: { command: written } }])).toBe(fenced("bash", written));
  });

  it("a here-document without an end does not swallow what follows", () => {
    expect(read(`${fenced("bash", "cat <<EOF\nx")}\n${fenced("bash", "ls")}`).calls).toEqual([
      bash("cat <<EOF\nx"),
      bash("ls"),
    ]);
  });

  it("a block that is not closed is told, and the next is read", () => {
    const open = read("so\n```bash\nls\n");
    expect(open.calls).toEqual([]);
    expect(open.error).toContain("the bash block is not closed: write ``` on a line of its own");
    const two = read(`\`\`\`bash\npwd\n${fenced("bash", "ls")}`);
    expect([two.calls, two.error]).toEqual([[bash("ls")], expect.stringContaining("not closed")]);
    expect(read("```bash\npw\n<finish>7</finish>")).toMatchObject({ calls: [["finish", { answer: "7" }]] });
  });

  it("an empty block is told", () => {
    expect(read(fenced("bash", "  "))).toMatchObject({ calls: [], error: expect.stringContaining("is empty") });
  });

  it("several blocks are several calls, in order", () => {
    expect(read(`${fenced("bash", "a")}\nthen\n${fenced("python", "b")}\n${fenced("sh", "c")}`).calls).toEqual([
      ...[bash("a"), bash("python3 - <<'PYTHON'\nb\nPYTHON"), bash("c")],
    ]);
  });

  it("nothing that is thought about is run", () => {
    expect(read(`<think>\n${fenced("bash", "rm x")}\n</think>\n${fenced("bash", "ls")}`).calls).toEqual([bash("ls")]);
    expect(read(`maybe\n${fenced("bash", "rm x")}\nno</think>\n${fenced("bash", "ls")}`).calls).toEqual([bash("ls")]);
    expect(read(`maybe\n\`\`\`bash\nrm x</think>\n${fenced("bash", "ls")}`)).toMatchObject({
      calls: [bash("ls")],
      error: null,
    });
    expect(read(fenced("bash", "grep '</think>' x")).calls).toEqual([bash("grep '</think>' x")]);
  });

  it.each([
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    "echo 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached",
    "\necho MINI_SWE_AGENT_FINAL_OUTPUT; cat patch",
  ])("%j hands the work in", (command) => {
    expect(read(fenced("bash", command)).calls).toEqual([["submit", {}]]);
    expect(read(fenced("bash", command), [tool("bash"), tool("finish")]).calls).toEqual([
      ["finish", { answer: "submitted" }],
    ]);
  });

  it.each([
    "grep COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT x",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUTS",
    "ls; echo x",
  ])("%j does not", (command) => {
    expect(read(fenced("bash", command)).calls).toEqual([bash(command)]);
  });

  it("the answer between tags ends the work; a mention of them does not", () => {
    expect(read("done\n<finish>7</finish>").calls).toEqual([["finish", { answer: "7" }]]);
    expect(read("<finish>\na\nb\n</finish>").calls).toEqual([["finish", { answer: "a\nb" }]]);
    expect(read("<finish>x</finish>", [tool("submit")]).calls).toEqual([["submit", { message: "x" }]]);
    expect(read("I will write <finish>x</finish> later").calls).toEqual([]);
    expect(read("<finish>x")).toMatchObject({ calls: [], error: expect.stringContaining("</finish>") });
  });

  it("any other tool is called by JSON", () => {
    expect(read(fenced("tool", '{"name": "get", "arguments": {"key": "a"}}')).calls).toEqual([["get", { key: "a" }]]);
    expect(read(fenced("tool", '{"name": "get", "arguments": {"key": "a"}} x'))).toMatchObject({
      ...{ calls: [], error: expect.stringContaining("expected nothing after the JSON object") },
    });
  });

  it("carriage returns of a text that ends its lines so are no part of a command", () => {
    const { calls, repairs } = read("a\r\n```bash\r\nls\r\npwd\r\n```\r\n");
    expect([calls, repairs.length]).toEqual([[bash("ls\npwd")], 1]);
    expect(read("```bash\nprintf 'a\r\n'\n```").calls).toEqual([bash("printf 'a\r\n'")]);
  });

  it("reads back any script that it renders, whatever fences and here-documents it holds", () => {
    const piece = fc.constantFrom(
      ...["```", "````", "~~~", "```bash", "   ```", "\n", "\n", "\n", "<<EOF", "<<'A B'", "<<-X", "EOF", "\tX", "A B"],
      ...[
        "<finish>",
        "</finish>",
        "</think>",
        "echo",
        " ",
        "\r",
        "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
        "é",
        "`",
        "'",
      ],
    );
    const script = fc.array(piece, { minLength: 1, maxLength: 14 }).map((parts) => parts.join(""));
    fc.assert(
      fc.property(
        fc.array(script, { minLength: 1, maxLength: 3 }),
        fc.constantFrom("bash", "execute_bash"),
        (all, name) => {
          const calls = all.map((command) => ({ name, arguments: { command } }));
          const { calls: back, error } = read(codeBlocks.renderTurn({ calls }), [tool(name)]);
          expect([error, back]).toEqual([null, calls.map((call) => [call.name, call.arguments])]);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("tells a model how to write, with the tools that it has", () => {
    const told = codeBlocks.describeTools(tools);
    for (const words of ["```bash\n", "```python\n", "does bash", '"name": "get"', "<finish>"])
      expect(told).toContain(words);
    expect(codeBlocks.describeTools([tool("bash"), tool("submit")])).toContain("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT");
    expect(codeBlocks.describeTools([tool("get")])).not.toContain("```bash");
  });

  it("takes time in proportion to the text", () => {
    const parts = [
      "```bash\n",
      "```bash\n<<A\n```\n",
      "````x\n",
      "<finish>\n",
      "```bash\ncat <<A\nA\n```\n",
      "```bash\n<<A\n",
    ];
    for (const part of parts) {
      for (const end of ["", "````bash\n", "A\n", "```\n"]) codeBlocks.parse(part.repeat(5000) + end, tools);
    }
  });
});

/** What the agent reads first: where the repository is, how to work, and the problem as it was reported. */
import type { ChatMessage } from "@rolldeck/contracts/ports/tokenizer";
import { type SweOptions, toolsOf } from "./options.ts";
import type { SweRow } from "./row.ts";

const styles = {
  react: "You are a software engineer who fixes problems in a repository through tools, without anybody to ask.",
  codeact:
    "You are a software engineer who fixes problems in a repository by running commands. In each turn say in a sentence what you are about to do and why, then do it, and read what came of it before you go on.",
} as const;

export function sweMessages(
  row: Pick<SweRow, "statement" | "hintsText">,
  folder: string,
  options: Pick<SweOptions, "agent" | "tools" | "comments" | "network">,
): ChatMessage[] {
  const tools = toolsOf(options);
  const comments = options.comments && row.hintsText !== null && row.hintsText.trim() !== "" ? row.hintsText : null;
  return [
    { role: "system", content: styles[options.agent] },
    {
      role: "user",
      content: [
        `A repository is checked out in ${folder}. Its users have this problem:`,
        fenced("issue", row.statement),
        ...(comments === null ? [] : ["This was said about it:", fenced("comments", comments)]),
        howTo(tools, folder, options.network),
      ].join("\n\n"),
    },
  ];
}

function howTo(tools: readonly string[], folder: string, network: SweOptions["network"]): string {
  const shell = tools[0] ?? "bash";
  const search = tools.includes("search") ? " or the search tool" : "";
  return [
    `Change the code in ${folder} so that the problem is gone. Tests that show the fix are written already and will be put in place afterwards: leave the existing tests as they are.`,
    "",
    "Work in these steps:",
    `1. Explore: find the code that the problem is about, with ${shell}${search}, and read it.`,
    "2. Reproduce: write a small script that shows the problem, and run it.",
    "3. Fix: change as little as solves the problem, where it comes from rather than where it shows.",
    "4. Test: run your script again, then the tests that cover what you changed. Think of inputs at the edges.",
    `5. Remove what you made only for trying things out, then call ${tools.at(-1)}: the work ends there, and what the repository then holds is graded.`,
    "",
    network === "none"
      ? "Everything that is needed is installed; there is no network."
      : "Everything that is needed is installed.",
  ].join("\n");
}

/** The text exactly, in a tag that it does not hold. */
function fenced(name: string, text: string): string {
  let tag = name;
  for (let number = 2; text.includes(`<${tag}>`) || text.includes(`</${tag}>`); number++) tag = `${name}-${number}`;
  return `<${tag}>\n${text}\n</${tag}>`;
}

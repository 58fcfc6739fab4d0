/**
 * What a patch's header says about it, as a question: its subject or description and the paragraph after that, without what no
 * reader of the bug would write: tags, ticket and CVE numbers, people, links, trailers. Pure.
 */

/** Fields of Debian's patch headers and of mails. */
const field = /^[A-Z][A-Za-z-]*:(\s|$)/;
const people = /^(thanks?( to)?|co-authored-by|reported(-| )by|reviewed(-| )by|signed-off-by|suggested-by)\b/i;
const trailer =
  /^(refs?\b|backport(ed)? (of|from)|\(?cherry[- ]picked|regression in|follow[- ]?up to|bug|fixes:|see (also )?https?|this patch header)/i;

export function patchQuery(patch: string): string {
  const header = headerOf(patch);
  const { subject, rest } = split(header);
  const paragraph = paragraphs(rest)[0] ?? "";
  return clean(`${clean(subject)}\n${people.test(paragraph) || trailer.test(paragraph) ? "" : paragraph}`);
}

function headerOf(patch: string): string[] {
  const lines = patch.replaceAll("\r", "").split("\n");
  const end = lines.findIndex((line) => /^(---( |$)|diff |Index: |\+\+\+ )/.test(line));
  return end === -1 ? lines : lines.slice(0, end);
}

/** The subject with the lines it goes on in, and what comes after the other fields. */
function split(header: readonly string[]): { readonly subject: string; readonly rest: readonly string[] } {
  const at = header.findIndex((line) => /^(Subject|Description):/.test(line));
  if (at === -1) {
    const first = header.findIndex((line) => line.trim() !== "" && !field.test(line));
    return first === -1 ? { subject: "", rest: [] } : { subject: header[first] ?? "", rest: header.slice(first + 1) };
  }
  const described = header[at]?.startsWith("Description:") ?? false;
  const first = header[at]?.replace(/^\w+:/, "") ?? "";
  const after = header.slice(at + 1);
  const end = after.findIndex((line) => !/^[ \t]/.test(line));
  const folded = (end === -1 ? after : after.slice(0, end)).map((line) => line.trim());
  const behind = (end === -1 ? [] : after.slice(end)).filter((line) => !field.test(line));
  // A mail folds a long subject; a description's further lines are its long text, where " ." parts paragraphs.
  return described
    ? { subject: first, rest: [...folded.map((line) => (line === "." ? "" : line)), "", ...behind] }
    : { subject: [first, ...folded].join(" "), rest: behind };
}

function paragraphs(lines: readonly string[]): string[] {
  return lines
    .map((line) => line.trim())
    .join("\n")
    .split(/\n\s*\n/)
    .map((one) => one.trim())
    .filter((one) => one !== "");
}

function clean(text: string): string {
  return text
    .replace(/MIME-Version:[\s\S]*?Content-Transfer-Encoding: \S+/g, " ")
    .replace(/^(\s*\[[^\]]*\])+/, " ")
    .replace(/\b(fixed|refs?|closes?)\s+(#\d+|CVE-[\d-]+)(,?\s*(and\s+)?(#\d+|CVE-[\d-]+))*\s*(--|:)?/gi, " ")
    .replace(/\bCVE-\d{4}-\d+\b/gi, " ")
    .replace(/https?:\/\/\S+|\S+@\S+|\b[0-9a-f]{7,40}\b|#\d+/g, " ")
    .split("\n")
    .filter((line) => !people.test(line.trim()))
    .join(" ")
    .replace(/\s+/g, " ")
    .trim();
}

/**
 * Words of code and of questions about it, in one form: identifiers fall into their parts (`getUserName`, `HTTP_404`), words lose
 * their endings. Invariant: a word gives the same term wherever it stands.
 */

const anyIdentifier = /[\p{L}\p{N}_]+/gu;
/** The same for text that is ASCII, as nearly all code is; several times as fast. */
const asciiIdentifier = /[A-Za-z0-9_]+/g;
const notAscii = /[\u0080-\uffff]/;
const part = /\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+|\p{Lo}+/gu;
const maxTermLength = 40;

/** Of a text, in order; with `whole`, an identifier of several parts gives itself too. */
export function codeTerms(text: string, { whole = true }: { readonly whole?: boolean } = {}): string[] {
  const terms = identifiers(text).flatMap((name) => termsOf(name));
  return whole ? terms : terms.filter((term) => !term.startsWith("="));
}

/** How often each comes. */
export function countTerms(text: string): Map<string, number> {
  const names = new Map<string, number>();
  for (const name of identifiers(text)) names.set(name, (names.get(name) ?? 0) + 1);
  const counts = new Map<string, number>();
  for (const [name, times] of names)
    for (const term of termsOf(name)) counts.set(term, (counts.get(term) ?? 0) + times);
  return counts;
}

const identifiers = (text: string): readonly string[] =>
  text.match(notAscii.test(text) ? anyIdentifier : asciiIdentifier) ?? [];

function termsOf(name: string): readonly string[] {
  const known = remembered.get(name);
  if (known !== undefined) return known;
  const terms = split(name);
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(name, terms);
  return terms;
}

/** The same names come again and again; the memory of them is emptied when it is full. */
const remembered = new Map<string, readonly string[]>();
const maxRemembered = 50_000;

function split(name: string): string[] {
  if (name.length > 200) return [];
  const parts = (name.match(part) ?? []).map((one) => one.toLowerCase()).filter((one) => one.length > 1);
  const stems = parts.map((one) => stem(one.slice(0, maxTermLength)));
  return stems.length > 1
    ? [
        ...stems,
        `=${name
          .toLowerCase()
          .replace(/^_+|_+$/g, "")
          .slice(0, maxTermLength)}`,
      ]
    : stems;
}

const vowel = /[aeiouy]/;

/** English endings that tell forms of one word apart; a stem keeps three letters and a vowel. */
export function stem(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word;
  let stemmed = word;
  if (stemmed.endsWith("ies") && stemmed.length > 4) stemmed = `${stemmed.slice(0, -3)}y`;
  else if (/(ss|x|ch|sh|z)es$/.test(stemmed)) stemmed = stemmed.slice(0, -2);
  else if (stemmed.endsWith("s") && !/(ss|us|is)$/.test(stemmed)) stemmed = stemmed.slice(0, -1);
  for (const ending of [
    "ization",
    "isation",
    "ational",
    "ations",
    "ation",
    "ingly",
    "edly",
    "ing",
    "ed",
    "er",
    "or",
    "ly",
    "ment",
    "able",
    "ible",
    "ness",
    "ion",
    "al",
  ]) {
    const rest = stemmed.slice(0, -ending.length);
    if (!stemmed.endsWith(ending) || rest.length < 3 || !vowel.test(rest)) continue;
    stemmed = /([bdfgmnprt])\1$/.test(rest) ? rest.slice(0, -1) : rest;
    break;
  }
  return stemmed.length > 3 && stemmed.endsWith("e") ? stemmed.slice(0, -1) : stemmed;
}

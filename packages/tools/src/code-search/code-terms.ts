/**
 * Words of code and of questions about it, in one form: identifiers fall into their parts (`getUserName`, `HTTP_404`), words lose
 * their endings. Invariant: a word gives the same term wherever it stands.
 */

const identifier = /[\p{L}\p{N}_]+/gu;
const part = /\p{Lu}+(?=\p{Lu}\p{Ll})|\p{Lu}?\p{Ll}+|\p{Lu}+|\p{N}+|\p{Lo}+/gu;
const maxTermLength = 40;

/** Of a text, in order; with `whole`, an identifier of several parts gives itself too. */
export function codeTerms(text: string, { whole = true }: { readonly whole?: boolean } = {}): string[] {
  const terms: string[] = [];
  for (const [name] of text.matchAll(identifier)) {
    const known = remembered.get(name);
    const parts = known ?? remember(name, termsOf(name));
    for (const term of parts) if (whole || !term.startsWith("=")) terms.push(term);
  }
  return terms;
}

/** The same names come again and again; the memory of them is emptied when it is full. */
const remembered = new Map<string, readonly string[]>();
const maxRemembered = 50_000;

function remember(name: string, terms: readonly string[]): readonly string[] {
  if (remembered.size >= maxRemembered) remembered.clear();
  remembered.set(name, terms);
  return terms;
}

function termsOf(name: string): string[] {
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

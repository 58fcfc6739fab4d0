/** Keeps keys out of what servers say back: some echo a request's headers in their errors. */
const hiddenSecret = "[key]";

/** @param secrets empty ones are ignored @returns the text with each of them, as it is or percent-encoded, replaced */
export function hideSecrets(text: string, secrets: readonly string[]): string {
  let hidden = text;
  for (const secret of secrets) {
    if (secret === "") continue;
    hidden = hidden.replaceAll(secret, hiddenSecret);
    const encoded = encodeURIComponent(secret);
    if (encoded !== secret) hidden = hidden.replaceAll(encoded, hiddenSecret);
  }
  return hidden;
}

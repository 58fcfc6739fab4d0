/** Rows in as few requests as their size allows. */

/** Tokens in one request at most: about 16 MB of JSON, well under the server's 64 MB. */
const maxRequestTokens = 400_000;

/** In order; a row that is larger than a request may be goes alone. */
export function* inRequests<T extends { readonly tokens: readonly number[] }>(rows: readonly T[]): Generator<T[]> {
  let chunk: T[] = [];
  let tokens = 0;
  for (const row of rows) {
    if (chunk.length > 0 && tokens + row.tokens.length > maxRequestTokens) {
      yield chunk;
      chunk = [];
      tokens = 0;
    }
    chunk.push(row);
    tokens += row.tokens.length;
  }
  if (chunk.length > 0) yield chunk;
}

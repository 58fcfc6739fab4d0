/** Server-sent events from bytes that may be cut anywhere, inside a character too. Only `data` is of interest. Pure. */
export class SseEvents {
  readonly #decoder = new TextDecoder();
  #rest = "";
  #data: string[] = [];

  /** @returns the data of each event that these bytes complete */
  push(bytes: Uint8Array): string[] {
    return this.#lines(this.#decoder.decode(bytes, { stream: true }));
  }

  /** @returns what an event without its closing blank line held; a stream that ends well leaves nothing */
  end(): string[] {
    return this.#lines(`${this.#decoder.decode()}\n\n`);
  }

  #lines(text: string): string[] {
    const all = this.#rest + text;
    // A carriage return at the end may be half of a line break.
    const held = all.endsWith("\r") ? 1 : 0;
    const lines = all.slice(0, all.length - held).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + all.slice(all.length - held);
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): string[] {
    if (line === "") {
      const data = this.#data;
      this.#data = [];
      return data.length === 0 ? [] : [data.join("\n")];
    }
    const found = /^data:( ?)(.*)$/s.exec(line);
    if (found) this.#data.push(found[2] ?? "");
    return [];
  }
}

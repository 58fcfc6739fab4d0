/** An error in the shape that OpenAI's clients read. */
import { jsonReply, type Reply } from "../http/reply.ts";

const types: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
};

const headersOf: Readonly<Record<number, Record<string, string>>> = {
  401: { "www-authenticate": "Bearer" },
  413: { connection: "close" },
};

export class OpenAiError extends Error {
  override readonly name = "OpenAiError";
  readonly #param: string | null;
  readonly #code: string | null;

  constructor(
    readonly status: number,
    message: string,
    options: { readonly param?: string | null; readonly code?: string; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.#param = options.param ?? null;
    this.#code = options.code ?? null;
  }

  reply(): Reply {
    const { status, message } = this;
    const error = { message, type: types[status] ?? "server_error", param: this.#param, code: this.#code };
    return jsonReply(status, { error }, headersOf[status] ?? {});
  }
}

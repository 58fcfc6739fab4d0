/**
 * A REST route as a value that both serves and documents: its input is one object made of path, query and body, parsed with
 * one schema; OpenAPI is generated from the same.
 */
import type { z } from "zod";
import type { StreamedBytes } from "../http/reply.ts";
import type { Principal } from "../principal.ts";
import type { Services } from "../services.ts";

export type Method = "GET" | "POST" | "DELETE";
export interface CallContext {
  readonly services: Services;
  readonly principal: Principal;
}

interface RouteFacts {
  readonly method: Method;
  /** Under /api/v1; `{runId}` is a field of the input. */
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  readonly needs: "read" | "write" | "owner";
  /** Fields the path fixes (`action` of /pause). */
  readonly fixed?: Readonly<Record<string, unknown>>;
  readonly status?: 200 | 201;
  /** Name of the reply's schema in the document. */
  readonly replyName: string;
  /** The body may also be YAML text, which becomes this field. */
  readonly textField?: string;
  /** The answer holds a secret that is shown once. */
  readonly secretReply?: boolean;
  /** Media types of a file that is of known ones, with the schema of a line where it has lines. */
  readonly fileTypes?: Readonly<Record<string, { readonly name: string; readonly schema: z.ZodType } | null>>;
}

/** What a route that answers with a file gives. */
export interface FileContent {
  readonly bytes: Uint8Array | StreamedBytes;
  readonly mediaType: string;
  readonly fileName: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route extends RouteFacts {
  readonly input: z.ZodObject;
  readonly reply: z.ZodType;
  /** The answer is a file, not JSON: the bytes of what `run` gave. */
  readonly isFile: boolean;
  /** Parses the input and calls. @throws ZodError and whatever the service throws */
  run(
    context: CallContext,
    input: unknown,
  ): Promise<{ readonly value: unknown; readonly location: string | null; readonly file: FileContent | null }>;
}

export function route<I extends z.ZodObject, O extends z.ZodType>(
  definition: RouteFacts & {
    readonly input: I;
    readonly reply: O;
    readonly call: (context: CallContext, input: z.output<I>) => Promise<z.output<O>>;
    /** Address of what a 201 made, under /api/v1. */
    readonly location?: (value: z.output<O>) => string;
    readonly file?: (value: z.output<O>, input: z.output<I>) => FileContent;
  },
): Route {
  const { call, location, file, ...facts } = definition;
  return {
    ...facts,
    isFile: file !== undefined,
    async run(context, input) {
      const parsed = definition.input.parse(input);
      const value = await call(context, parsed);
      return { value, location: location?.(value) ?? null, file: file?.(value, parsed) ?? null };
    },
  };
}

/** Names of the path's parameters, in order. */
export const pathParameters = (path: string): string[] =>
  [...path.matchAll(/\{(\w+)\}/gu)].map(([, name]) => name ?? "");

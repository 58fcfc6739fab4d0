/**
 * GET /sign-in?code=… exchanges a one-time code for the session cookie. The code is used up by the exchange and taken out of
 * the address by the redirect, so neither history nor a Referer keeps it alive.
 */
import type { IncomingMessage } from "node:http";
import { createSession, endSession, sessionDays } from "@rolldeck/db/auth/sessions";
import { useSignInCode } from "@rolldeck/db/auth/sign-in-codes";
import type { Queryable } from "@rolldeck/db/reads/rows";
import { cookieName, readCookie, sessionCookie } from "./cookies.ts";
import { badCodePage, signInPage } from "./pages.ts";
import { htmlReply, type Reply } from "./reply.ts";

const maxCodeLength = 200;

export async function serveSignIn(db: Queryable, request: IncomingMessage, url: URL, port: number): Promise<Reply> {
  const next = localPath(url.searchParams.get("next"));
  const code = url.searchParams.get("code")?.trim();
  if (!code) return htmlReply(200, signInPage(next));
  if (code.length > maxCodeLength || !(await useSignInCode(db, code))) return htmlReply(401, badCodePage(next));
  const { secret } = await createSession(db);
  const secure = request.headers["x-forwarded-proto"] === "https";
  return {
    status: 303,
    headers: {
      location: next,
      "cache-control": "no-store",
      "set-cookie": sessionCookie(cookieName(port), secret, sessionDays * 86_400, secure),
    },
    body: "",
  };
}

/** POST /sign-out ends the session on the server too. */
export async function serveSignOut(db: Queryable, request: IncomingMessage, port: number): Promise<Reply> {
  const secret = readCookie(request, cookieName(port));
  if (secret) await endSession(db, secret);
  return {
    status: 303,
    headers: { location: "/sign-in", "set-cookie": sessionCookie(cookieName(port), "", 0, false) },
    body: "",
  };
}

/** Only a path of this server; anything that a browser could read as another one becomes "/". */
export function localPath(next: string | null): string {
  if (next === null || next.length > 2_000 || !/^\/(?![/\\])[\x21-\x7e]*$/u.test(next) || next.includes("\\"))
    return "/";
  return next.startsWith("/sign-in") ? "/" : next;
}

/** The session cookie. Its name carries the port: cookies know no ports, and two servers on one machine must not share one. */
import type { IncomingMessage } from "node:http";

export const cookieName = (port: number): string => `rolldeck_session_${port}`;

export function readCookie(request: IncomingMessage, name: string): string | null {
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const at = part.indexOf("=");
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return null;
}

/** Strict: the browser sends it only for pages of this server itself. @param secure the page came over https */
export const sessionCookie = (name: string, secret: string, maxAgeS: number, secure: boolean): string =>
  `${name}=${secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${maxAgeS}${secure ? "; Secure" : ""}`;

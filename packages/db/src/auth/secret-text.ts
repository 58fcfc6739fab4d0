/**
 * Secrets people or programs present. Only their SHA-256 is stored: they are random and long, so a plain hash can be neither
 * guessed nor reversed, and a look-up by hash leaks nothing about any other secret.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** 192 bits, URL-safe. */
export const newSecret = (prefix = ""): string => `${prefix}${randomBytes(24).toString("base64url")}`;

export const hashSecret = (secret: string): string => createHash("sha256").update(secret).digest("hex");

/** Equal without telling by its time how much of it is: hashes have one length whatever is presented. */
export const sameSecret = (a: string, b: string): boolean =>
  timingSafeEqual(Buffer.from(hashSecret(a)), Buffer.from(hashSecret(b)));

"use client";
/** The same text keeps its key, so a second press or a retry after a lost answer starts nothing twice. */
import { useRef } from "react";

/** 128 random bits as text; unlike randomUUID it also exists on plain http. */
const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export function useOnceKey(): (text: string) => string {
  const key = useRef<{ readonly text: string; readonly value: string } | null>(null);
  return (text) => {
    if (key.current?.text !== text) key.current = { text, value: newKey() };
    return key.current.value;
  };
}

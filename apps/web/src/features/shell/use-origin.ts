"use client";
import { useSyncExternalStore } from "react";

const never = () => () => {};
/** Where this page was loaded from, for commands that people copy. */
export const useOrigin = (): string =>
  useSyncExternalStore(
    never,
    () => window.location.origin,
    () => "http://127.0.0.1",
  );

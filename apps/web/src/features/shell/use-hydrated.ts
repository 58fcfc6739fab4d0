"use client";
import { useSyncExternalStore } from "react";

const never = () => () => {};
/** False while rendering on the server and during hydration: what only this browser knows comes after. */
export const useHydrated = (): boolean =>
  useSyncExternalStore(
    never,
    () => true,
    () => false,
  );

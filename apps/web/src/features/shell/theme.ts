"use client";
import { useEffect } from "react";
import { useStored } from "./stored.ts";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];
const isTheme = (value: string): value is Theme => themes.some((theme) => theme === value);

/** The preference and its setter; keeps `data-theme` on the root true to it (public/theme.js sets it before first paint). */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [stored, setStored] = useStored("theme", "system");
  const theme = isTheme(stored) ? stored : "system";
  useEffect(() => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const apply = () => {
      const dark = theme === "dark" || (theme === "system" && system.matches);
      document.documentElement.dataset.theme = dark ? "dark" : "light";
    };
    apply();
    system.addEventListener("change", apply);
    return () => system.removeEventListener("change", apply);
  }, [theme]);
  return [theme, setStored];
}

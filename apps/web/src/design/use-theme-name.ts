"use client";
import { useEffect, useState } from "react";

/** Changes when the theme does, so that a canvas is drawn again. */
export function useThemeName(): string {
  const [name, setName] = useState("");
  useEffect(() => {
    const root = document.documentElement;
    const read = () => setName(root.dataset.theme ?? "");
    read();
    const observer = new MutationObserver(read);
    observer.observe(root, { attributeFilter: ["data-theme"] });
    return () => observer.disconnect();
  }, []);
  return name;
}

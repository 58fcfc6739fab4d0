"use client";
import { type RefObject, useLayoutEffect, useRef, useState } from "react";

/** Width of an element in whole pixels, followed as it changes; 0 before the first layout. */
export function useWidth<E extends HTMLElement>(): [RefObject<E | null>, number] {
  const element = useRef<E>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (!target) return;
    setWidth(Math.floor(target.getBoundingClientRect().width));
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

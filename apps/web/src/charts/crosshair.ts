"use client";
/** One cursor for all charts of a page, moved outside React: listeners change the DOM themselves. */
import { createContext, useContext } from "react";

export class Crosshair {
  #x: number | null = null;
  readonly #listeners = new Set<(x: number | null) => void>();
  get x(): number | null {
    return this.#x;
  }
  set(x: number | null): void {
    if (x === this.#x) return;
    this.#x = x;
    for (const listener of this.#listeners) listener(x);
  }
  readonly listen = (listener: (x: number | null) => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}
const lone = new Crosshair();
export const CrosshairContext = createContext<Crosshair>(lone);
export const useCrosshair = (): Crosshair => useContext(CrosshairContext);

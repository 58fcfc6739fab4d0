import Link from "next/link";
import type { ButtonHTMLAttributes, ComponentProps, JSX, ReactNode } from "react";
import { join } from "./join.ts";

/** `primary` at most once a page; `danger` only inside a confirmation. */
export type ButtonLook = "primary" | "plain" | "quiet" | "danger";

const base =
  "inline-flex h-8 items-center justify-center gap-1.5 rounded-md px-3 text-base font-medium whitespace-nowrap transition-colors duration-100 disabled:opacity-50 disabled:cursor-not-allowed";
const looks: Record<ButtonLook, string> = {
  primary: "bg-accent text-on-accent hover:brightness-110",
  plain: "border border-g4 bg-g0 text-g9 hover:bg-g2",
  quiet: "text-g8 hover:bg-g2 hover:text-g9",
  danger: "bg-failed text-g0 hover:brightness-110",
};

export const buttonClass = (look: ButtonLook = "plain", extra?: string): string => join(base, looks[look], extra);

/** @param small for a row of a table */
export function Button({
  look = "plain",
  small = false,
  className,
  type = "button",
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { look?: ButtonLook; small?: boolean }): JSX.Element {
  return (
    <button type={type} className={buttonClass(look, join(small && "h-6! px-2! text-sm!", className))} {...rest} />
  );
}

export function ButtonLink({
  look = "plain",
  className,
  ...rest
}: ComponentProps<typeof Link> & { look?: ButtonLook }): JSX.Element {
  return <Link className={buttonClass(look, className)} {...rest} />;
}

/** A square button that shows only an icon; its label is required. */
export function IconButton({
  label,
  children,
  className,
  pressed,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { label: string; children: ReactNode; pressed?: boolean }): JSX.Element {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      className={join(
        "inline-flex size-6 items-center justify-center rounded-md text-g7 transition-colors duration-100 hover:bg-g3 hover:text-g9 disabled:opacity-40",
        pressed && "bg-accent-soft text-accent-text",
        className,
      )}
      {...rest}
    >
      {children}
    </button>
  );
}

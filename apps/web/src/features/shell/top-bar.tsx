"use client";
import Link from "next/link";
import { Fragment, type JSX } from "react";
import { IconButton } from "../../design/button.tsx";
import { Icon, type IconName } from "../../design/icon.tsx";
import { Kbd } from "../../design/kbd.tsx";
import { FreshnessChip } from "./freshness-chip.tsx";
import { usePage } from "./page-header.ts";
import { type Theme, themes, useTheme } from "./theme.ts";

const themeIcons: Record<Theme, IconName> = { system: "system", light: "sun", dark: "moon" };

export function TopBar({ onPalette, onSheet }: { onPalette(): void; onSheet(): void }): JSX.Element {
  const { crumbs } = usePage();
  const [theme, setTheme] = useTheme();
  const nextTheme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "system";
  return (
    <header className="flex h-11 shrink-0 items-center gap-3 border-b border-g3 px-4 max-md:gap-1.5 max-md:px-3">
      <nav aria-label="Breadcrumb" className="flex min-w-0 flex-1 items-center gap-1.5 overflow-hidden">
        {crumbs.map((crumb, index) => (
          <Fragment key={`${crumb.label}${crumb.href ?? ""}`}>
            {index > 0 && <span className="text-g6 max-md:hidden">/</span>}
            {crumb.href && index < crumbs.length - 1 ? (
              <Link
                href={crumb.href}
                className="max-w-[240px] min-w-8 shrink-[4] truncate text-g7 hover:text-g9 max-md:hidden"
              >
                {crumb.label}
              </Link>
            ) : (
              <span aria-current="page" className="min-w-24 truncate text-g9">
                {crumb.label}
              </span>
            )}
          </Fragment>
        ))}
      </nav>
      <FreshnessChip />
      <button
        type="button"
        onClick={onPalette}
        aria-label="Command palette"
        className="flex h-7 w-[168px] shrink-0 items-center gap-2 rounded-md border max-md:w-auto border-g4 px-2 text-sm text-g7 hover:bg-g2 hover:text-g9"
      >
        <Icon name="search" size={14} />
        <span className="flex flex-1 items-center justify-between max-md:hidden">
          Find or do
          <Kbd>⌘K</Kbd>
        </span>
      </button>
      <IconButton label={`Theme: ${theme}. Change to ${nextTheme}`} onClick={() => setTheme(nextTheme)}>
        <Icon name={themeIcons[theme]} />
      </IconButton>
      <IconButton label="Keys" onClick={onSheet}>
        <span className="mono">?</span>
      </IconButton>
    </header>
  );
}

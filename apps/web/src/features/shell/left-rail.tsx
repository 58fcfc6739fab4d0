"use client";
import Link from "next/link";
import { usePathname } from "next/navigation";
import type { JSX } from "react";
import { Icon, type IconName } from "../../design/icon.tsx";
import { join } from "../../design/join.ts";
import { useStored } from "./stored.ts";

interface Place {
  readonly href: string;
  readonly label: string;
  readonly icon: IconName;
  /** Another address whose pages belong here. */
  readonly also?: string;
}
const places: readonly Place[] = [
  { href: "/runs", label: "Runs", icon: "runs" },
  { href: "/compare", label: "Compare", icon: "compare", also: "/comparisons" },
  { href: "/schedule", label: "Schedule", icon: "schedule" },
  { href: "/settings", label: "Settings", icon: "settings" },
];

const wideOnly = "px-4 max-md:justify-center max-md:px-0";

export function LeftRail(): JSX.Element {
  const path = usePathname();
  const [width, setWidth] = useStored("rail", "wide");
  const narrow = width === "narrow";
  return (
    <nav
      aria-label="Main"
      className={join("flex shrink-0 flex-col border-r border-g3 bg-g1", narrow ? "w-12" : "w-40 max-md:w-12")}
    >
      <Link
        href="/runs"
        aria-label="Rolldeck"
        className={join("flex h-11 items-center gap-2 font-semibold", narrow ? "justify-center" : wideOnly)}
      >
        <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" className="shrink-0">
          <rect x="1" y="2" width="16" height="3" rx="1" fill="var(--g9)" />
          <rect x="1" y="7.5" width="11" height="3" rx="1" fill="var(--accent)" />
          <rect x="1" y="13" width="6" height="3" rx="1" fill="var(--g6)" />
        </svg>
        {!narrow && <span className="text-lg tracking-tight max-md:hidden">Rolldeck</span>}
      </Link>
      <ul className="flex flex-1 flex-col gap-0.5 p-2">
        {places.map((place) => {
          const here = [place.href, place.also ?? place.href].some((at) => path === at || path.startsWith(`${at}/`));
          return (
            <li key={place.href}>
              <Link
                href={place.href}
                title={place.label}
                aria-label={place.label}
                aria-current={here ? "page" : undefined}
                className={join(
                  "flex h-8 items-center gap-2 rounded-md",
                  narrow ? "justify-center" : "px-2 max-md:justify-center",
                  here ? "bg-g3 font-medium text-g9" : "text-g8 hover:bg-g2 hover:text-g9",
                )}
              >
                <Icon name={place.icon} />
                {!narrow && <span className="max-md:hidden">{place.label}</span>}
              </Link>
            </li>
          );
        })}
      </ul>
      <button
        type="button"
        onClick={() => setWidth(narrow ? "wide" : "narrow")}
        aria-label={narrow ? "Widen the rail" : "Narrow the rail"}
        className={join(
          // A narrow window has a narrow rail whatever was chosen.
          "m-2 flex h-8 items-center gap-2 rounded-md text-g7 max-md:hidden hover:bg-g2 hover:text-g9",
          narrow ? "justify-center" : "px-2",
        )}
      >
        <Icon name={narrow ? "expand" : "collapse"} />
        {!narrow && <span className="text-sm">Narrow</span>}
      </button>
    </nav>
  );
}

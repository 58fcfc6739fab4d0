"use client";
import type { JSX } from "react";
import { Button } from "../../design/button.tsx";
import { join } from "../../design/join.ts";
import { Kbd } from "../../design/kbd.tsx";
import { Segmented } from "../../design/segmented.tsx";
import { formatCount } from "../../format/numbers.ts";
import { modeLabels, tokenModes } from "./token-colour.ts";
import type { RolloutView } from "./use-rollout-view.ts";

export function RolloutToolbar({
  state: { view, setView, showTokens, turns, rollout },
  collapsed,
  onCollapsed,
}: {
  state: RolloutView;
  collapsed: boolean;
  onCollapsed(collapsed: boolean): void;
}): JSX.Element {
  return (
    <div className="flex min-h-10 shrink-0 items-center gap-3 border-b border-g3 px-4 max-md:flex-wrap max-md:py-1">
      <Segmented
        label="Show"
        options={[
          { value: "text", label: "Text", title: "t" },
          { value: "tokens", label: "Tokens", title: "t" },
        ]}
        value={showTokens ? "tokens" : "text"}
        onChange={(value) => void setView({ tokens: value === "tokens", tok: value === "tokens" ? view.tok : null })}
      />
      {showTokens ? (
        <Segmented
          label="Colour"
          options={tokenModes.map((mode) => ({ value: mode, ...modeLabels[mode] }))}
          value={view.colour}
          onChange={(colour) => void setView({ colour })}
        />
      ) : (
        <Button look="quiet" className="h-7" onClick={() => onCollapsed(!collapsed)}>
          {collapsed ? "Expand all" : "Collapse all"}
        </Button>
      )}
      {rollout && rollout.siblings.length > 1 && (
        <Button
          look="quiet"
          className={join("h-7", view.beside && "bg-accent-soft text-accent-text")}
          aria-pressed={view.beside !== null}
          title="Rollouts of the same group, turn by turn (d)"
          onClick={() => void setView({ beside: view.beside ? null : [] })}
        >
          Side by side
        </Button>
      )}
      <span className="flex-1" />
      {!showTokens && (
        <span className="flex items-center gap-1 text-xs whitespace-nowrap text-g7 max-[1440px]:hidden">
          <Kbd>j</Kbd>
          <Kbd>k</Kbd> turn <Kbd>t</Kbd> tokens <Kbd>⌘F</Kbd> find
        </span>
      )}
      <span className="figures text-sm whitespace-nowrap text-g7">
        {formatCount(turns.length)} {turns.length === 1 ? "turn" : "turns"} · {formatCount(rollout?.tokens.total)}{" "}
        tokens
      </span>
    </div>
  );
}

// The drawer below the tracks: statistics and spans of the visible window or the chosen stretch.
import { useRef } from "preact/hooks";
import { formatDuration, formatMoment, length, type TimeRange } from "../../base/time";
import type { Run } from "../../data/run";
import { useSession } from "../../data/session";
import { DRAWER_TABS, type DrawerTab, type DrawerView, tallness } from "../../state/drawerState";
import { Button, Close } from "../controls";
import { DurationsPanel } from "./DurationsPanel";
import { FlatProfile } from "./FlatProfile";
import { ProcessBars } from "./ProcessBars";

const TITLES: Readonly<Record<DrawerTab, string>> = {
  profile: "Flat profile",
  durations: "Durations",
  processes: "Processes",
};
/** A key makes the drawer so much taller. */
const KEY_STEP = 24;

type Props = {
  readonly run: Run;
  readonly range: TimeRange;
  /** Whether the range is a chosen stretch; else it is what is on the screen. */
  readonly chosen: boolean;
};

export function StretchDrawer({ run, range, chosen }: Props) {
  const session = useSession();
  const view = session.state.value.drawer;
  const change = (change: Partial<DrawerView>): void =>
    session.update({ drawer: { ...session.state.peek().drawer, ...change } });
  const { tab } = view;
  if (!tab) return null;
  const resolution = length(range) / 1000;
  return (
    <section
      class="drawer vertical fixed anchor surface"
      style={{ height: `${view.tallPx}px` }}
      aria-label="Statistics of the stretch of time"
    >
      <Grip tallPx={view.tallPx} onTall={(tallPx) => change({ tallPx })} />
      <header class="drawer-head row fixed fine">
        <div class="row gap-4" role="tablist" aria-label="Statistics">
          {DRAWER_TABS.map((one) => (
            <Button
              role="tab"
              class="chip row"
              key={one}
              id={`drawer-tab-${one}`}
              aria-selected={one === tab}
              aria-controls="drawer-panel"
              tabIndex={one === tab ? 0 : -1}
              onClick={() => change({ tab: one })}
              onKeyDown={(event) => {
                const by = event.code === "ArrowRight" ? 1 : event.code === "ArrowLeft" ? -1 : 0;
                const next = DRAWER_TABS[(DRAWER_TABS.indexOf(one) + by + DRAWER_TABS.length) % DRAWER_TABS.length];
                if (!by || !next) return;
                event.preventDefault();
                event.stopPropagation();
                change({ tab: next });
                document.getElementById(`drawer-tab-${next}`)?.focus();
              }}
            >
              {TITLES[one]}
            </Button>
          ))}
        </div>
        <span class="weak ellipsis">
          {chosen ? "chosen stretch" : "on the screen"}: {formatDuration(length(range))} from{" "}
          {formatMoment(range.startNs, resolution)}
        </span>
        <span class="spacer" />
        <Close label="Close the drawer" title="Close the drawer (L)" onClick={() => change({ tab: "" })} />
      </header>
      <div class="drawer-panel vertical fill" id="drawer-panel" role="tabpanel" aria-labelledby={`drawer-tab-${tab}`}>
        {tab === "profile" && <FlatProfile range={range} onDurations={() => change({ tab: "durations" })} />}
        {tab === "durations" && <DurationsPanel run={run} range={range} />}
        {tab === "processes" && <ProcessBars run={run} range={range} />}
      </div>
    </section>
  );
}

/** The upper edge, which is dragged, or moved by keys. */
function Grip({ tallPx, onTall }: { tallPx: number; onTall: (px: number) => void }) {
  const pressed = useRef<{ readonly y: number; readonly tallPx: number } | undefined>(undefined);
  return (
    <div
      class="drawer-grip"
      role="slider"
      aria-orientation="vertical"
      aria-label="Height of the drawer"
      aria-valuenow={tallPx}
      tabIndex={0}
      onPointerDown={(event) => {
        pressed.current = { y: event.clientY, tallPx };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const from = pressed.current;
        if (from) onTall(tallness(from.tallPx + from.y - event.clientY));
      }}
      onPointerUp={() => (pressed.current = undefined)}
      onKeyDown={(event) => {
        const by = event.code === "ArrowUp" ? KEY_STEP : event.code === "ArrowDown" ? -KEY_STEP : 0;
        if (!by) return;
        event.preventDefault();
        onTall(tallness(tallPx + by));
      }}
    />
  );
}

// Search over the whole run: a field in the page's head, a list of hits, and where in the run they are.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { listeners, within } from "../base/events";
import { formatCount } from "../base/quantity";
import { formatDuration, formatMoment, length } from "../base/time";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import { type Found, fetchSearch, type Hit } from "../data/spanHits";
import { Swatch } from "./figures";
import { jumpTo } from "./showOnTimeline";
import { useRested } from "./useAnswer";

const REST_MS = 160;
const DENSITY_BINS = 400;
/** A field over a list of its own (WAI-ARIA combobox), not a native one with a datalist. */
const COMBOBOX = { role: "combobox", "aria-autocomplete": "list" } as const;

export function Search({ run }: { run: Run }) {
  const session = useSession();
  const field = useRef<HTMLInputElement>(null);
  const open = useSignal(false);
  const active = useSignal(0);
  const { find } = session.state.value;

  useEffect(() => {
    const { on, stop } = listeners(window);
    on("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (within(event, "input, textarea, dialog")) return;
      event.preventDefault();
      field.current?.focus();
      field.current?.select();
    });
    return stop;
  }, []);

  // Pages have fields of their own for the same words: the whole run is searched when somebody looks here. A pause in typing asks.
  const { value: found, failure } = useRested(
    open.value && find.trim() ? find : "",
    async (signal) => {
      const answer = await fetchSearch(session.api, find, DENSITY_BINS, signal);
      active.value = 0;
      return answer;
    },
    { restMs: REST_MS },
  );

  const jump = (hit: Hit): void => {
    jumpTo(session, run, hit);
    open.value = false;
    field.current?.blur();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const hits = found.value?.hits ?? [];
    if (event.key === "Escape") {
      open.value = false;
      field.current?.blur();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = active.value + (event.key === "ArrowDown" ? 1 : -1);
      active.value = Math.max(0, Math.min(hits.length - 1, next));
    } else if (event.key === "Enter") {
      const hit = hits[active.value];
      if (hit) jump(hit);
    }
  };
  const shown = open.value && find.trim() !== "";
  return (
    <search
      class="search anchor"
      onFocusOut={(event) => {
        if (!(event.relatedTarget instanceof Node && event.currentTarget.contains(event.relatedTarget)))
          open.value = false;
      }}
    >
      {/* biome-ignore lint/a11y/useAriaPropsSupportedByRole: the role comes with COMBOBOX. */}
      <input
        ref={field}
        type="text"
        {...COMBOBOX}
        aria-expanded={shown}
        aria-controls="hits"
        aria-activedescendant={shown && found.value?.hits.length ? `hit-${active.value}` : undefined}
        aria-label="Search spans in the whole run"
        placeholder="Search the whole run"
        title="Words of a name; -word to leave out; group:data; role:operator; dur:>1ms"
        spellcheck={false}
        value={find}
        onInput={(event) => {
          open.value = true;
          session.update({ find: event.currentTarget.value });
        }}
        onFocus={() => (open.value = true)}
        onKeyDown={onKeyDown}
      />
      <kbd>/</kbd>
      {shown && (
        <div class="hits">
          {failure.value && <p class="empty">{failure.value}</p>}
          {!failure.value && found.value && <Hits found={found.value} run={run} active={active.value} onJump={jump} />}
          {!failure.value && !found.value && <p class="empty late">Searching …</p>}
        </div>
      )}
    </search>
  );
}

type HitsProps = {
  readonly found: Found;
  readonly run: Run;
  readonly active: number;
  readonly onJump: (hit: Hit) => void;
};

function Hits({ found, run, active, onJump }: HitsProps) {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const names = new Map(run.locations.map((l) => [l.location, l.name]));
  const resolution = Math.max(1000, length(run.bounds) / 10_000);
  return (
    <>
      <div class="hits-head" role="status">
        <b>{formatCount(found.count)}</b> {found.count === 1 ? "span" : "spans"}
        {run.meta.folded_count > 0 && " in detail"}, {formatDuration(found.totalNs)} in all
        {found.count > found.hits.length && <span class="weak"> · the longest {found.hits.length} are listed</span>}
      </div>
      <Density counts={found.density} />
      <div class="hits-list scrolls" id="hits" role="listbox" aria-label="Hits, longest first" ref={list}>
        {found.hits.map((hit, i) => (
          <div
            key={`${hit.location}-${hit.startNs}-${hit.depth}`}
            id={`hit-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === active}
            class="hit cells"
            onMouseDown={(event) => {
              event.preventDefault();
              onJump(hit);
            }}
          >
            <Swatch group={hit.group} />
            <span class="ellipsis">{hit.name}</span>
            <span class="weak ellipsis">{names.get(hit.location)}</span>
            <span class="number weak ellipsis">{formatMoment(hit.startNs, resolution)}</span>
            <span class="number">{formatDuration(hit.durationNs)}</span>
          </div>
        ))}
      </div>
    </>
  );
}

/** Where in the run the hits are. */
function Density({ counts }: { counts: Float64Array }) {
  const most = counts.reduce((a, b) => Math.max(a, b), 1);
  const points = Array.from(counts, (n, i) =>
    n ? `M${i} 20V${(20 - Math.max(2, 19 * Math.sqrt(n / most))).toFixed(1)}` : "",
  );
  return (
    <svg
      class="density"
      viewBox={`0 0 ${counts.length} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label="Hits over the whole run, from its start to its end"
    >
      <path d={points.join("")} />
    </svg>
  );
}

// How the rows are looked at, as controls above them: view, order, filter, folding.
import { isDrawn } from "../data/run";
import { PRESETS, type Preset, ROW_SORTS, type RowSort } from "../state/rowsState";
import { Button, Select } from "../widgets/controls";
import type { TimelineModel } from "./model/timelineModel";
import { RadarScale } from "./RadarScale";
import { FILTER_FIELD, foldAll, sortAtPointer } from "./rowActions";
import { measures, measureTitle } from "./rows/radarMeasure";
import { fits, foldedByDefault, hiddenLocations } from "./rows/rowLayout";
import { StepLegend } from "./StepLegend";

const PRESET_TITLES: Readonly<Record<Preset, string>> = {
  all: "all rows",
  master: "master: row per process",
  process: "process: one thread",
  counter: "counters",
  summary: "summary: shares",
  radar: "radar: one measure",
};
const SORT_TITLES: Readonly<Record<RowSort, string>> = {
  rank: "by rank",
  host: "by host",
  time: "by time in region",
  value: "by value at cursor",
};

/** Views whose rows fold and share the screen. */
const FOLDING: readonly Preset[] = ["all", "master", "radar"];

export function RowsBar({ model }: { model: TimelineModel }) {
  const view = model.rows.view.value;
  const ask = model.rows.ask.value;
  const hidden = hiddenLocations(ask);
  const folded = view.folds ? view.folds === "all" : foldedByDefault("p0", ask);
  return (
    <div class="rows-bar row fine gap-12" role="toolbar" aria-label="Rows">
      <Select
        words="view"
        choices={PRESETS}
        value={view.preset}
        title="Which rows there are (K: the next view)"
        titleOf={(preset) => PRESET_TITLES[preset]}
        onChoose={(preset) => model.rows.change({ preset, folds: "", flipped: [] }, "push")}
      />
      {view.preset === "process" && <ChosenLocation model={model} />}
      {view.preset !== "process" && view.preset !== "summary" && <Order model={model} />}
      {(view.preset === "radar" || view.sort === "value") && <Measure model={model} />}
      <RadarScale model={model} />
      {view.preset !== "process" && (
        <label class="row-filter">
          <span class="weak">rows</span>
          <input
            id={FILTER_FIELD}
            type="search"
            value={view.filter}
            placeholder="rank:3-7 host:n01 -stream"
            title="Which rows there are: rank:3-7,12 host:NAME process:NAME thread:NAME stream:NAME, or a word; a minus leaves out ( \ )"
            onInput={(event) => model.rows.change({ filter: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape" || event.key === "Enter") event.currentTarget.blur();
            }}
          />
        </label>
      )}
      {hidden > 0 && (
        <Button class="link" onClick={() => model.rows.change({ filter: "" })}>
          {hidden} threads hidden ✕
        </Button>
      )}
      <span class="spacer" />
      <StepLegend model={model} />
      {model.run.processes.length > 1 && FOLDING.includes(view.preset) && (
        <Button class="quiet" title="Fold or unfold all processes (U)" onClick={() => foldAll(model)}>
          {folded ? "unfold all" : "fold all"}
        </Button>
      )}
      {FOLDING.includes(view.preset) && (
        <Button
          class="quiet"
          aria-pressed={fits(ask)}
          title="All rows share the height of the screen (V)"
          onClick={() => model.rows.change({ fit: !fits(ask) })}
        >
          fit rows
        </Button>
      )}
    </div>
  );
}

function Order({ model }: { model: TimelineModel }) {
  const view = model.rows.view.value;
  const { region } = model.session.state.value;
  return (
    <Select
      words="order"
      choices={ROW_SORTS}
      value={view.sort}
      title="The order of the rows: by time in the region that stands out, within the window; by value at the cursor (O)"
      titleOf={(sort) => SORT_TITLES[sort]}
      disabled={(sort) => sort === "time" && !region}
      onChoose={(sort) => (sort === "value" ? sortAtPointer(model) : model.rows.change({ sort, sortAt: undefined }))}
    />
  );
}

function Measure({ model }: { model: TimelineModel }) {
  const { region } = model.session.state.value;
  return (
    <Select
      words="of"
      choices={measures(model.rows.series.value, region, model.rows.measure.value)}
      value={model.rows.measure.value}
      titleOf={measureTitle}
      onChoose={(measure) => model.rows.change({ measure })}
    />
  );
}

/** More threads than this are chosen in the rows, and not from a list. */
const MOST_LISTED = 2000;

function ChosenLocation({ model }: { model: TimelineModel }) {
  const { processes, locations } = model.run;
  const titles = new Map(processes.map((p) => [p.process, p.rank === undefined ? `pid ${p.pid}` : `rank ${p.rank}`]));
  const shown = model.rows.all.value[0];
  const listed = locations.filter(isDrawn).slice(0, MOST_LISTED);
  const names = new Map(
    listed.map((l) => [String(l.location), `${titles.get(l.process)}, ${l.name || `thread ${l.threadId}`}`]),
  );
  return (
    <Select
      words="thread"
      choices={[...names.keys()]}
      value={String(shown?.kind === "location" ? shown.location.location : "")}
      titleOf={(location) => names.get(location) ?? ""}
      onChoose={(location) => model.rows.change({ location: Number(location) })}
    />
  );
}

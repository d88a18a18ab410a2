// Page 2: threads over time, with nesting, metrics and steps.

import { useEffect, useMemo } from "preact/hooks";
import { listeners } from "../base/events";
import { formatCount, plural } from "../base/quantity";
import { formatDuration, length } from "../base/time";
import { around } from "../base/viewport";
import type { Run } from "../data/run";
import type { Step } from "../data/runSteps";
import { type Loaded, useSession } from "../data/session";
import type { View } from "../state/view";
import { Breadcrumb } from "../timeline/Breadcrumb";
import { Minimap } from "../timeline/Minimap";
import { TimelineModel } from "../timeline/model/timelineModel";
import { NoteDialog } from "../timeline/notes/NoteDialog";
import { NotesList } from "../timeline/notes/NotesList";
import { beginNote, toggleNotes } from "../timeline/notes/noting";
import { RowsBar } from "../timeline/RowsBar";
import { SaveMenu } from "../timeline/SaveMenu";
import { SelectedSpan } from "../timeline/SelectedSpan";
import { Tracks } from "../timeline/Tracks";
import { Button } from "../widgets/controls";
import { CriticalPathDetails } from "../widgets/details/CriticalPathDetails";
import { GapDetails } from "../widgets/details/GapDetails";
import { SpanLinks } from "../widgets/details/SpanLinks";
import { WindowStatistics } from "../widgets/details/WindowStatistics";
import { StretchDrawer } from "../widgets/drawer/StretchDrawer";
import { BigNumbers } from "../widgets/figures";
import { GroupLegend } from "../widgets/GroupLegend";
import { KeyHints } from "../widgets/KeyLegend";
import { Await, Missing } from "../widgets/Loading";
import { StepStrip } from "../widgets/steps/StepStrip";

function TimelinePage() {
  const { run } = useSession();
  return (
    <Await of={run.value} what="Opening the trace">
      {(value) => <Timeline run={value} />}
    </Await>
  );
}

const NOTHING: Loaded<readonly Step[]> = { status: "loading" };
const STRIP_HEIGHT = 46;

function Timeline({ run }: { run: Run }) {
  const session = useSession();
  const model = useMemo(() => new TimelineModel(session, run, window.devicePixelRatio), [session, run]);
  // The tracks wait neither for steps nor for metrics, and the first picture comes before the steps are even asked for.
  const loaded = model.pictured.value ? session.steps.value : NOTHING;
  const series = session.series.value;
  useEffect(() => {
    if (loaded.status === "ready") {
      model.steps.value = loaded.value;
      model.stepsNote.value = run.meta.sampled.length
        ? "not known: only samples were taken, and calls were not recorded"
        : "none found: nothing repeats often and regularly enough";
    }
    if (series.status === "ready") model.rows.series.value = series.value;
  }, [model, loaded, series]);
  useEffect(() => {
    // Others may have written since somebody looked here last.
    const fetch = (): void => void session.ask(session.notes.fetch());
    fetch();
    const { on, stop } = listeners(window);
    on("focus", fetch);
    return stop;
  }, [session]);
  if (run.meta.span_count === 0 && run.meta.folded_count > 0)
    return (
      <p class="empty">
        This is a profile without times: it has the time of each function, but not when it ran. The page Profile has its
        call tree.
      </p>
    );
  if (run.meta.span_count === 0 && !run.meta.sampled.length)
    return (
      <Missing what="This run recorded no spans. Record functions and operators with" option="--preset auto SCRIPT" />
    );
  const shown = model.time.shown.value;
  const selected = model.selection.span.value;
  const [links, gap] = [model.selection.links.value, model.selection.gap.value];
  const { range } = session.state.value;
  const path = model.data.critical.value;
  return (
    <div class="timeline flex">
      <div class="vertical fill">
        {loaded.status === "loading" && <div class="step-strip anchor" style={{ height: `${STRIP_HEIGHT + 6}px` }} />}
        <StepStrip
          steps={model.steps.value}
          window={shown}
          height={STRIP_HEIGHT}
          chosen={session.state.value.step}
          onSteps={(stretch) => model.time.goTo(around(stretch, run.bounds))}
        />
        <Breadcrumb model={model}>
          <Button
            class="quiet"
            aria-pressed={session.state.value.critical !== undefined}
            onClick={() => model.data.toggleCritical()}
            title="What the time of the step in the middle of the screen depends on (C)"
          >
            critical path
          </Button>
          <Button
            class="quiet"
            aria-pressed={session.state.value.drawer.tab !== ""}
            onClick={() => model.toggleDrawer()}
            title="Statistics of the chosen stretch, or of what is on the screen (L)"
          >
            statistics
          </Button>
          <Button class="quiet" onClick={() => beginNote(model)} title="Write a note (B)">
            + note
          </Button>
          <Button
            class="quiet"
            aria-pressed={session.state.value.notes}
            onClick={() => toggleNotes(model)}
            title="The list of notes (Shift+B)"
          >
            {plural(session.notes.list.value.length, "note")}
          </Button>
          <SaveMenu model={model} />
        </Breadcrumb>
        <RowsBar model={model} />
        <Minimap model={model} />
        <Tracks model={model} />
        <StretchDrawer run={run} range={range ?? shown} chosen={range !== undefined} />
        <GroupLegend marks>
          <KeyHints />
        </GroupLegend>
      </div>
      <NoteDialog model={model} />
      {session.state.value.notes ? (
        <aside class="details fixed scrolls surface" aria-label="Notes on the run">
          <NotesList model={model} />
        </aside>
      ) : (
        <SelectedSpan
          model={model}
          none={
            gap ? (
              <GapDetails
                gap={gap}
                onFocus={() => model.focus()}
                onSpan={(span) => void model.selection.goTo(span)}
                onClose={() => void model.selection.select(undefined)}
              />
            ) : path ? (
              <CriticalPathDetails
                path={path}
                onName={(region) => session.update({ region })}
                onClose={() => model.data.toggleCritical()}
              />
            ) : (
              <StretchFacts model={model} />
            )
          }
        >
          {links && selected && (
            <SpanLinks links={links} startNs={selected.start_ns} onJump={(link) => void model.selection.jump(link)} />
          )}
        </SelectedSpan>
      )}
    </div>
  );
}

/** The chosen stretch in numbers; where none is chosen, what is on the screen. */
function StretchFacts({ model }: { model: TimelineModel }) {
  const { range } = model.session.state.value;
  const shown = range ?? model.time.shown.value;
  const inside = model.steps.value.filter((s) => s.startNs >= shown.startNs && s.startNs < shown.endNs);
  const count = inside.reduce((sum, s) => sum + s.count, 0);
  return (
    <section class="stretch rows">
      <h2>{range ? "Chosen stretch" : "On the screen"}</h2>
      <BigNumbers
        of={[
          [formatDuration(length(shown)), "duration"],
          [formatCount(count), count === 1 ? "step begins in it" : "steps begin in it"],
        ]}
      />
      {range && (
        <div class="buttons">
          <Button onClick={() => model.focus()}>
            Zoom <kbd>Enter</kbd>
          </Button>
          <Button onClick={() => model.session.update({ range: undefined })}>
            Clear <kbd>Esc</kbd>
          </Button>
        </div>
      )}
      {model.pictured.value && (
        <WindowStatistics
          range={shown}
          chosen={range !== undefined}
          onName={(find) => model.session.update({ find })}
        />
      )}
      <p class="weak finer">Click a span for its facts, drag to choose a stretch.</p>
    </section>
  );
}

export const view: View = {
  name: "timeline",
  title: "Timeline",
  place: 2,
  component: TimelinePage,
  chosen: ["range", "selection", "gap"],
};

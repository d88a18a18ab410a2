// One thread over time, as it ran: the timeline of one location. A profile without times: in the order of its file.
import { useEffect, useMemo } from "preact/hooks";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import { Breadcrumb } from "../timeline/Breadcrumb";
import { TimelineModel } from "../timeline/model/timelineModel";
import { Tracks } from "../timeline/Tracks";
import { SpanDetails } from "../widgets/details/SpanDetails";

export function TimeOrder({ run, location }: { run: Run; location: number }) {
  const session = useSession();
  const model = useMemo(() => {
    const locations = run.locations.filter((each) => each.location === location);
    const processes = run.processes.filter((each) => each.process === locations[0]?.process);
    return new TimelineModel(session, { ...run, locations, processes }, window.devicePixelRatio, [location]);
  }, [session, run, location]);
  const steps = model.pictured.value ? session.steps.value : undefined;
  useEffect(() => {
    if (steps?.status === "ready") model.steps.value = steps.value;
  }, [model, steps]);
  const selected = model.selection.span.value;
  return (
    <>
      <div class="vertical fill">
        <Breadcrumb model={model} />
        <Tracks key={location} model={model} />
      </div>
      <aside class="details" aria-label="Facts about what is chosen">
        {selected ? (
          <SpanDetails
            span={selected}
            onFocus={() => model.focus()}
            onStep={(step) => model.time.goAround(step)}
            onIterations={() =>
              session.update({ page: "structure", region: selected.name, step: selected.step?.step }, "push")
            }
            onClose={() => void model.selection.select(undefined)}
          />
        ) : (
          <p class="empty">Click a span for its facts. Zoom with W and S, pan with A and D.</p>
        )}
      </aside>
    </>
  );
}

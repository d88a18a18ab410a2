// One thread over time, as it ran: the timeline of one location. A profile without times: in the order of its file.
import { useEffect, useMemo } from "preact/hooks";
import type { Run } from "../data/run";
import { useSession } from "../data/session";
import { Breadcrumb } from "../timeline/Breadcrumb";
import { TimelineModel } from "../timeline/model/timelineModel";
import { SelectedSpan } from "../timeline/SelectedSpan";
import { Tracks } from "../timeline/Tracks";

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
  return (
    <>
      <div class="vertical fill">
        <Breadcrumb model={model} />
        <Tracks key={location} model={model} />
      </div>
      <SelectedSpan
        model={model}
        none={<p class="empty">Click a span for its facts. Zoom with W and S, pan with A and D.</p>}
      />
    </>
  );
}

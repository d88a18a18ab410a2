// The steps of a serving engine: what they compute and how fast, why GPUs are idle in them, and what each layer takes.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { fetchClasses, fetchGaps, fetchLayers } from "../data/engine";
import { load, useSession } from "../data/session";
import type { View } from "../state/view";
import { WithCode } from "../widgets/controls";
import { EngineGaps } from "../widgets/engine/EngineGaps";
import { EngineLayers } from "../widgets/engine/EngineLayers";
import { EngineSteps } from "../widgets/engine/EngineSteps";
import { Await } from "../widgets/Loading";
import { showRange } from "../widgets/showOnTimeline";
import { StepsCard } from "../widgets/steps/StepsCard";

const ANALYSIS = "serving";

function ServingPage() {
  const session = useSession();
  const classes = useMemo(() => load(() => fetchClasses(session.api)), [session]);
  return (
    <Await of={classes.value} what="Summing up the steps of the engine">
      {({ rows, note }) =>
        rows.length ? (
          <div class="overview rows gap-14">
            <EngineSteps
              rows={rows}
              more={{
                words: "as a table, and by step",
                onClick: () => session.update({ page: "analyses", analysis: { name: ANALYSIS, options: {} } }, "push"),
              }}
            />
            <Await of={session.steps.value} what="Finding the steps">
              {(steps) => (
                <StepsCard steps={steps} onSteps={(range) => showRange(session, range, { range: undefined })} />
              )}
            </Await>
            <Gaps />
            <Layers />
          </div>
        ) : (
          <p class="empty">
            <WithCode text={asSentence(note)} />
          </p>
        )
      }
    </Await>
  );
}

function Gaps() {
  const session = useSession();
  const gaps = useMemo(() => load(() => fetchGaps(session.api)), [session]);
  return (
    <section class="card surface" aria-labelledby="gaps-title">
      <header>
        <h2 id="gaps-title">Why the GPU is idle in them</h2>
        <span class="weak">what the host does until it has launched the next kernel or copy; means of a step</span>
      </header>
      <Await of={gaps.value} what="Looking for gaps">
        {({ rows, note }) => (rows.length ? <EngineGaps gaps={rows} /> : <p class="weak">{asSentence(note)}</p>)}
      </Await>
    </section>
  );
}

function Layers() {
  const session = useSession();
  const layers = useMemo(() => load(() => fetchLayers(session.api)), [session]);
  return (
    <section class="card surface" aria-labelledby="layers-title">
      <header>
        <h2 id="layers-title">What each layer takes of the GPU</h2>
        <span class="weak">mean of a step</span>
      </header>
      <Await of={layers.value} what="Looking for layers">
        {({ rows, note }) => (rows.length ? <EngineLayers layers={rows} /> : <p class="weak">{asSentence(note)}</p>)}
      </Await>
    </section>
  );
}

export const view: View = {
  name: ANALYSIS,
  title: "Serving",
  component: ServingPage,
  analysis: ANALYSIS,
  onlyWithData: true,
};

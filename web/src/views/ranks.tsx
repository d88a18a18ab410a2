// Page 10: who waited for whom, in what, and how much of the time of ranks was useful.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { around } from "../base/viewport";
import { fetchAnalysis } from "../data/analysisTable";
import { fetchWaits, type RankWaits, type Wait } from "../data/rankWaits";
import { type Run, ranksOf } from "../data/run";
import { load, useLasting, useSession } from "../data/session";
import type { View } from "../state/view";
import { Choices } from "../widgets/controls";
import { Await, AwaitWithRun } from "../widgets/Loading";
import { TilePicture } from "../widgets/ranks/TilePicture";
import { WaitStates } from "../widgets/ranks/WaitStates";
import { type Factor, factorsOf, titleOf } from "../widgets/ranks/waitSums";
import { useTableView } from "../widgets/tables/TablePage";

const NAME = "ranks";
const FEWEST = 2;

function RanksPage() {
  const session = useSession();
  const waits = useMemo(() => load(() => fetchWaits(session.api)), [session]);
  return (
    <AwaitWithRun of={waits.value} what="Looking for waits">
      {(run, value) =>
        ranksOf(run).length < FEWEST ? (
          <p class="empty">This run has fewer than two ranks, so that no rank waited for another.</p>
        ) : (
          <Ranks run={run} waits={value} />
        )
      }
    </AwaitWithRun>
  );
}

function Ranks({ run, waits }: { run: Run; waits: RankWaits }) {
  const session = useSession();
  const [view, change] = useTableView(NAME);
  const { by: model } = view;
  const asked = useMemo(
    () => load(() => fetchAnalysis(session.api, "efficiency", model ? { model } : {})),
    [session, model],
  );
  const efficiency = useLasting(asked.value);
  const table = efficiency.status === "ready" ? efficiency.value : undefined;
  const models = table?.options.find(({ name }) => name === "model");
  const ranks = useMemo(() => ranksOf(run), [run]);
  /** Shows a wait on the timeline, at the top who waited and, where it is known, who was waited for. */
  const show = ({ location, timeNs, maxNs, awaitedRank }: Wait): void => {
    const range = { startNs: timeNs, endNs: timeNs + maxNs };
    const process = run.processes.find(({ rank }) => rank !== undefined && rank === awaitedRank)?.process;
    const awaited = run.locations.find((one) => one.process === process && one.kind === "thread")?.location;
    const pinned = [location, awaited].flatMap((one) => (one === undefined ? [] : `l${one}`));
    const rows = { ...session.state.value.rows, preset: "all", pinned } as const;
    session.update({ page: "timeline", window: around(range, run.bounds, 1), trail: [undefined], rows, range }, "push");
  };
  return (
    <div class="overview rows gap-14">
      <p>
        {[waits.note, table?.note].map((note) => note && `${asSentence(note)} `)}
        <span class="weak">All figures are of the whole run.</span>
      </p>
      <div class="columns rows gap-14">
        <section class="card surface" aria-labelledby="efficiency-title">
          <header>
            <h2 id="efficiency-title">Efficiency</h2>
            <span class="spacer" />
            {models && (
              <Choices
                words="model"
                choices={models.choices}
                value={model || String(models.value)}
                onChoose={(by) => change({ ...view, by })}
              />
            )}
          </header>
          <Await of={efficiency} what="Computing">
            {(value) => <Factors of={factorsOf(value)} />}
          </Await>
        </section>
        <section class="card surface" aria-labelledby="pairs-title">
          <header>
            <h2 id="pairs-title">Who waited for whom</h2>
            {waits.left > 0 && <span class="weak">without the {waits.left} shortest sums</span>}
          </header>
          <TilePicture ranks={ranks} waits={waits.byPair} onChoose={show} />
        </section>
      </div>
      <section class="card surface" aria-labelledby="states-title">
        <header>
          <h2 id="states-title">What ranks waited for</h2>
        </header>
        <WaitStates ranks={ranks} waits={waits.byRank} onChoose={show} />
      </section>
    </div>
  );
}

const Factors = ({ of: factors }: { of: readonly Factor[] }) => (
  <ul class="ladder factors rows" aria-label="Factors">
    {factors.map(({ name, value, depth }) => (
      <li key={name} class="rung cells">
        <span style={{ paddingLeft: `${14 * depth}px` }}>{titleOf(name)}</span>
        <span class="rung-bar flex" aria-hidden="true">
          {value !== undefined && <span class="rung-share" style={{ width: `${100 * Math.min(1, value)}%` }} />}
          {value !== undefined && <span class="rung-lost fill" />}
        </span>
        {value === undefined ? <span class="weak number">not known</span> : <b class="number">{value.toFixed(2)}</b>}
      </li>
    ))}
  </ul>
);

export const view: View = { name: NAME, title: "Ranks", place: 10, component: RanksPage, fewestRanks: FEWEST };

// Page 10: who waited for whom, in what, and how much of the time of ranks was useful.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { formatDuration, length, type TimeRange } from "../base/time";
import { around } from "../base/viewport";
import { fetchRankSteps, fetchWaits, rankPart, STEP_VALUES, type Wait } from "../data/rankWaits";
import { type Run, ranksOf } from "../data/run";
import { load, useLasting, useSession } from "../data/session";
import { fetchAnalysis } from "../data/tables/analysisTable";
import { fetchUnfinished } from "../data/unfinished";
import type { Parameters } from "../data/wire/api";
import { INITIAL } from "../state/address";
import type { View } from "../state/view";
import { Button, Choices, Select } from "../widgets/controls";
import { ClusterBars } from "../widgets/drawer/ProcessBars";
import { Await } from "../widgets/Loading";
import { StepTiles } from "../widgets/ranks/StepTiles";
import { UnfinishedOperations } from "../widgets/ranks/UnfinishedOperations";
import { WaitStates } from "../widgets/ranks/WaitStates";
import { WaitTiles } from "../widgets/ranks/WaitTiles";
import { type Cause, causesOf, type Factor, factorsOf, titleOf } from "../widgets/ranks/waitSums";
import { useTableView } from "../widgets/tables/TablePage";

const NAME = "ranks";
const FEWEST = 2;
const MOST_CAUSES = 8;

function RanksPage() {
  return (
    <Await of={useSession().run.value} what="Opening the trace">
      {(run) =>
        ranksOf(run).length < FEWEST ? (
          <p class="empty">This run has fewer than two ranks, so that no rank waited for another.</p>
        ) : run.meta.flight_recorder ? (
          <Hanging run={run} />
        ) : (
          <Ranks run={run} />
        )
      }
    </Await>
  );
}

/** Where ranks wait in something that is not complete, that is all that is known: there are no steps and no waits. */
function Hanging({ run }: { run: Run }) {
  const session = useSession();
  const unfinished = useMemo(() => load(() => fetchUnfinished(session.api)), [session]);
  return (
    <Await of={unfinished.value} what="Comparing what ranks called">
      {({ operations, note }) =>
        operations.length ? (
          <div class="overview rows gap-14">
            <section class="verdict" aria-label="Verdict">
              <p>{asSentence(note)}</p>
            </section>
            <UnfinishedOperations run={run} of={operations} />
          </div>
        ) : (
          <Ranks run={run} />
        )
      }
    </Await>
  );
}

/** Its parts come one by one: of many ranks, each takes the server a while. The sums come first, alone. */
function Ranks({ run }: { run: Run }) {
  const session = useSession();
  const asksFor = JSON.stringify(rankPart(session.state.value));
  const part = useMemo((): Parameters => JSON.parse(asksFor), [asksFor]);
  const begun = useSignal(false);
  const loading = useMemo(
    () => (begun.value ? load(() => fetchWaits(session.api, part)) : undefined),
    [session, part, begun.value],
  );
  const waits = useLasting(loading?.value);
  const [view, change] = useTableView(NAME);
  const { by: model } = view;
  const asked = useMemo(
    () => (begun.value ? load(() => fetchAnalysis(session.api, "efficiency", model ? { model } : {})) : undefined),
    [session, model, begun.value],
  );
  const efficiency = useLasting(asked?.value);
  const table = efficiency.status === "ready" ? efficiency.value : undefined;
  const models = table?.options.find(({ name }) => name === "model");
  const ranks = useMemo(() => ranksOf(run), [run]);
  const hasGpus = run.locations.some(({ kind, spanCount }) => kind === "stream" && spanCount > 0);
  const { window, steps: filter } = session.state.value;
  const chosen = [
    window && `what the timeline shows, ${formatDuration(length(window))}`,
    filter.classes.length > 0 && `steps of class ${filter.classes.join(", ")}`,
  ].filter(Boolean);
  const wholeRun = () =>
    session.update({ window: undefined, trail: [], steps: { ...filter, classes: INITIAL.steps.classes } }, "push");
  /** Shows a stretch of time on the timeline, with some locations at the top. */
  const show = (range: TimeRange, room: number, locations: readonly (number | undefined)[], step?: number): void => {
    const pinned = locations.flatMap((one) => (one === undefined ? [] : `l${one}`));
    const rows = { ...session.state.value.rows, preset: "all", pinned } as const;
    const shown = around(range, run.bounds, room);
    session.update({ page: "timeline", window: shown, trail: [undefined], rows, range, step }, "push");
  };
  const threadOf = (process: number | undefined): number | undefined =>
    run.locations.find((one) => one.process === process && one.kind === "thread")?.location;
  /** Shows a wait, at the top who waited and, where it is known, who was waited for. */
  const showWait = ({ location, timeNs, maxNs, awaitedRank }: Wait): void => {
    const process = run.processes.find(({ rank }) => rank !== undefined && rank === awaitedRank)?.process;
    show({ startNs: timeNs, endNs: timeNs + maxNs }, 1, [location, threadOf(process)], session.state.value.step);
  };
  const showCause = ({ rank, location, timeNs }: Cause): void => {
    const process = run.processes.find((one) => one.rank === rank)?.process;
    show({ startNs: timeNs, endNs: timeNs + 1 }, 1e6, [location, threadOf(process)], session.state.value.step);
  };
  const showStep = async (question: Parameters & { row: number; column: number }): Promise<void> => {
    const step = await session.ask(session.api.json("ranks/steps/cell", question));
    if (!step) return;
    const range = { startNs: step.start_ns, endNs: step.start_ns + step.duration_ns };
    show(range, 0.08, [threadOf(step.process)], step.step);
  };
  return (
    <div class="overview rows gap-14">
      <p>
        {[waits.status === "ready" && waits.value.note, table?.note].map((note) => note && `${asSentence(note)} `)}
        {chosen.length > 0 ? (
          <>
            <span class="weak">Waits and steps are of {chosen.join(", ")}.</span>{" "}
            <Button class="link" onClick={wholeRun}>
              Whole run
            </Button>
          </>
        ) : (
          <span class="weak">All figures are of the whole run.</span>
        )}
      </p>
      <section class="card surface" aria-labelledby="time-title">
        <header>
          <h2 id="time-title">Where the time of ranks went</h2>
        </header>
        <ClusterBars run={run} range={window ?? run.bounds} onAnswer={() => (begun.value = true)} />
      </section>
      <div class="columns rows gap-14">
        <section class="card surface" aria-labelledby="efficiency-title">
          <header>
            <h2 id="efficiency-title">Efficiency</h2>
            {chosen.length > 0 && <span class="weak">of the whole run</span>}
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
          <Await of={efficiency} what="Finding the steps of all ranks">
            {(value) => <Factors of={factorsOf(value)} />}
          </Await>
        </section>
        <section class="card surface" aria-labelledby="pairs-title">
          <header>
            <h2 id="pairs-title">Who waited for whom</h2>
          </header>
          <Await of={waits} what="Looking for waits">
            {({ byPair }) => <WaitTiles ranks={ranks} waits={byPair} onChoose={showWait} />}
          </Await>
        </section>
      </div>
      <section class="card surface" aria-labelledby="states-title">
        <header>
          <h2 id="states-title">What ranks waited for</h2>
        </header>
        <Await of={waits} what="Looking for waits">
          {({ byRank }) => <WaitStates ranks={ranks} waits={byRank} onChoose={showWait} />}
        </Await>
      </section>
      {begun.value && <CausesOfWaits among="ranks" wholeRun={chosen.length > 0} onChoose={showCause} />}
      {begun.value && hasGpus && <CausesOfWaits among="gpus" wholeRun={chosen.length > 0} onChoose={showCause} />}
      {begun.value && <StepsOfRanks part={part} onOpen={showStep} />}
    </div>
  );
}

const CAUSES = { ranks: "What made ranks late", gpus: "What made GPUs and their hosts wait" } as const;

type CausesProps = {
  readonly among: keyof typeof CAUSES;
  readonly wholeRun: boolean;
  readonly onChoose: (cause: Cause) => void;
};

function CausesOfWaits({ among, wholeRun, onChoose }: CausesProps) {
  const session = useSession();
  const asked = useMemo(() => load(() => fetchAnalysis(session.api, "delays", { among })), [session, among]);
  const id = `causes-of-${among}`;
  return (
    <section class="card surface" aria-labelledby={id}>
      <header>
        <h2 id={id}>{CAUSES[among]}</h2>
        {wholeRun && <span class="weak">of the whole run</span>}
      </header>
      <Await of={useLasting(asked.value)} what="Looking for causes">
        {(table) => <Causes of={causesOf(table, MOST_CAUSES)} onChoose={onChoose} />}
      </Await>
    </section>
  );
}

function Causes({ of: causes, onChoose }: { of: readonly Cause[]; onChoose: (cause: Cause) => void }) {
  const [first] = causes;
  if (!first) return <p class="weak">No cause of a wait is known.</p>;
  const most = first.directNs + first.onNs;
  return (
    <ul class="ladder causes rows" aria-label="Causes of waits">
      {causes.map((cause) => (
        <li key={`${cause.rank} ${cause.name}`} class="rung cells">
          <Button class="link" onClick={() => onChoose(cause)}>
            {`rank ${cause.rank}, ${cause.name}`}
          </Button>
          <span class="rung-bar flex" aria-hidden="true">
            <span class="rung-share" style={{ width: `${(100 * cause.directNs) / most}%` }} />
            <span class="rung-lost" style={{ width: `${(100 * cause.onNs) / most}%` }} />
          </span>
          <span class="number">
            <b>{formatDuration(cause.directNs + cause.onNs)}</b>
            {cause.onNs > 0 && <span class="weak"> {formatDuration(cause.onNs)} passed on</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

type StepsProps = {
  readonly part: Parameters;
  readonly onOpen: (question: Parameters & { row: number; column: number }) => void;
};

function StepsOfRanks({ part, onOpen }: StepsProps) {
  const session = useSession();
  const [view, change] = useTableView("rank-steps");
  const value = STEP_VALUES.find((one) => one === view.by) ?? STEP_VALUES[0];
  const asked = useMemo(() => load(() => fetchRankSteps(session.api, value, part)), [session, value, part]);
  return (
    <section class="card surface" aria-labelledby="steps-title">
      <header>
        <h2 id="steps-title">Steps of all ranks</h2>
        <span class="spacer" />
        <Select
          words="shown"
          choices={STEP_VALUES}
          value={value}
          titleOf={titleOf}
          onChoose={(by) => change({ ...view, by })}
        />
      </header>
      <Await of={useLasting(asked.value)} what="Finding the steps of all ranks">
        {(steps) => <StepTiles of={steps} onOpen={(column, row) => onOpen({ ...part, value, row, column })} />}
      </Await>
    </section>
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

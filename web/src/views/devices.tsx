// Page 9: how much of each GPU was used, rung by rung, what it measured itself, and why it had nothing to do.
import { useMemo } from "preact/hooks";
import { asSentence } from "../base/names";
import { plural } from "../base/quantity";
import type { TimeRange } from "../base/time";
import { around } from "../base/viewport";
import type { Run } from "../data/run";
import { load, type Session, useSession } from "../data/session";
import { fileAddress } from "../data/tables/analysisTable";
import { fetchGpus, fetchIdle, type Gpu, type Gpus, type IdleCause, idleOf } from "../data/tables/gpuTables";
import type { State } from "../state/address";
import type { View } from "../state/view";
import { metricRows } from "../timeline/rows/rowLayout";
import { Button, WithCode } from "../widgets/controls";
import { type GpuActions, GpuCard } from "../widgets/gpus/GpuCard";
import { GpuHeat } from "../widgets/gpus/GpuHeat";
import { GpuLadder, HowCounted } from "../widgets/gpus/GpuLadder";
import { GpuOthers } from "../widgets/gpus/GpuOthers";
import {
  lossesSentence,
  lossSentence,
  meanLadder,
  RUNGS,
  severalProcesses,
  spreadSentence,
  tableOf,
} from "../widgets/gpus/gpuWords";
import { AwaitWithRun } from "../widgets/Loading";
import { chosenRow, TablePage, useTableView } from "../widgets/tables/TablePage";
import { rowOf } from "../widgets/tables/tableRows";

/** More GPUs than this are a table with a card of the chosen one. */
const MOST_CARDS = 4;
/** Streams of a GPU that come to the top of the timeline, those with most spans. */
const MOST_STREAMS = 4;
/** Metrics that come there, too, by unit; the others are among the rows of the process. */
const PINNED_UNITS: ReadonlySet<string> = new Set(["%", "Throughput %", "W", "MHz", "°C"]);
const NAME = "devices";

function DevicesPage() {
  const session = useSession();
  const gpus = useMemo(() => load(() => fetchGpus(session.api)), [session]);
  return (
    <AwaitWithRun of={gpus.value} what="Looking at the GPUs">
      {(run, value) => (value.gpus.length ? <Devices run={run} value={value} /> : <None notRead={value.notRead} />)}
    </AwaitWithRun>
  );
}

function None({ notRead }: { notRead: string }) {
  return (
    <div class="empty">
      <p>
        <b>No GPU did anything in this run</b>, or none was recorded
        <WithCode text={notRead && `: ${notRead}`} />.
      </p>
      <p>
        <code>strobe run train.py</code> records kernels and copies of NVIDIA GPUs, and the GPUs’ own counters;{" "}
        <code>strobe doctor</code> lists what this machine lacks for it.
      </p>
    </div>
  );
}

type Props = { readonly run: Run; readonly value: Gpus };

function Devices({ run, value }: Props) {
  const session = useSession();
  const { gpus } = value;
  // Causes of idle time are found among launches, which takes longer than everything else here.
  const idle = useMemo(() => load(() => fetchIdle(session.api)), [session]).value;
  const whyIdle = (gpu: Gpu): readonly IdleCause[] | undefined =>
    idle.status === "ready" ? idleOf(idle.value, gpu) : undefined;
  const actions: GpuActions = {
    onTimeline: (gpu) => session.update(timelineOf(session, run, gpu), "push"),
    onKernels: () => session.update({ page: "kernels" }, "push"),
    onGap: ({ location, startNs, durationNs }) => {
      const range: TimeRange = { startNs, endNs: startNs + Math.max(1, durationNs) };
      const gap = { location, startNs: startNs + Math.floor(durationNs / 2) };
      const window = around(range, run.bounds, 0.5);
      session.update({ page: "timeline", window, trail: [undefined], selection: undefined, gap }, "push");
    },
  };
  const many = severalProcesses(gpus);
  const card = (gpu: Gpu, onClose?: () => void) => (
    <GpuCard
      key={`${gpu.process}/${gpu.host}/${gpu.number}`}
      gpu={gpu}
      many={many}
      idle={whyIdle(gpu)}
      folded={gpu.process !== undefined && run.meta.folded_processes.includes(gpu.process)}
      notRead={value.notRead}
      {...actions}
      {...(onClose && { onClose })}
    />
  );
  // Most programs use few of the GPUs of a machine, and all of them are read.
  const used = gpus.filter(({ process }) => process !== undefined);
  const shown = used.length ? used : gpus;
  if (shown.length > MOST_CARDS) return <Many value={value} card={card} onTimeline={actions.onTimeline} />;
  const others = gpus.filter((gpu) => !shown.includes(gpu));
  return (
    <div class="overview rows gap-14">
      {value.note && <p class="weak">{asSentence(value.note)}</p>}
      {shown.map((gpu) => card(gpu))}
      {others.length > 0 && <GpuOthers gpus={others} />}
    </div>
  );
}

/** What the timeline shows of a GPU: its metrics and busiest streams at the top, everything else below. */
function timelineOf(session: Session, run: Run, gpu: Gpu): Partial<State> {
  const { state, series } = session;
  const shownWith = gpu.readings?.process;
  const name = `GPU ${gpu.readings?.device} `;
  const rows =
    shownWith === undefined || series.value.status !== "ready" ? [] : metricRows(shownWith, series.value.value);
  const metrics = rows
    .filter((row) => row.family.startsWith(name) && PINNED_UNITS.has(row.unit))
    .map((row) => `m${shownWith}.${row.family}`);
  const streams = run.locations
    .filter((one) => one.kind === "stream" && one.process === gpu.process && one.device === gpu.number)
    .filter((one) => one.spanCount > 0)
    .sort((a, b) => b.spanCount - a.spanCount)
    .slice(0, MOST_STREAMS)
    .map((one) => `l${one.location}`);
  const { rows: view } = state.value;
  return {
    page: "timeline",
    window: undefined,
    trail: [],
    rows: { ...view, preset: "all", pinned: [...metrics, ...streams] },
  };
}

type ManyProps = Pick<GpuActions, "onTimeline"> & {
  readonly value: Gpus;
  readonly card: (gpu: Gpu, onClose?: () => void) => preact.JSX.Element;
};

function Many({ value, card, onTimeline }: ManyProps) {
  const session = useSession();
  const { gpus } = value;
  const [view, change] = useTableView(NAME);
  const table = useMemo(() => tableOf(gpus), [gpus]);
  const rung = RUNGS.find((one) => one.key === view.by)?.key ?? "busy";
  const known = RUNGS.filter((one) => gpus.some(({ ladder }) => ladder?.[one.key] !== undefined));
  const chosen = gpus[rowOf(table, session.state.value.row)];
  const choose = (one: number): void => session.update(chosenRow(table, one));
  const open = (one: number): void => {
    choose(one);
    const gpu = gpus[one];
    if (gpu) onTimeline(gpu);
  };
  return (
    <TablePage
      name={NAME}
      label="GPUs"
      rowWord="GPU"
      table={table}
      toolsLabel="What is shown of the GPUs"
      tools={
        <>
          {known.length > 0 && <span class="weak">cells: rank, and percent of</span>}
          {known.map((one) => (
            <Button
              class="chip row"
              key={one.key}
              title={one.counted}
              aria-pressed={one.key === rung}
              onClick={() => change({ ...view, by: one.key })}
            >
              {one.title}
            </Button>
          ))}
        </>
      }
      links={
        <>
          <a href={fileAddress("utilisation", {}, "csv")} download="utilisation.csv" title="How much of each was used">
            CSV
          </a>
          <a href={fileAddress("devices", {}, "csv")} download="devices.csv" title="What each measured itself">
            measured CSV
          </a>
        </>
      }
      above={
        known.length > 0 && (
          <GpuHeat gpus={gpus} rung={rung} chosen={chosen} onChoose={(gpu) => choose(gpus.indexOf(gpu))} />
        )
      }
      side={() => (chosen ? card(chosen, () => session.update({ row: "" })) : <All value={value} />)}
      onChoose={choose}
      onOpen={open}
    />
  );
}

/** All GPUs together, where none is chosen. */
function All({ value }: { value: Gpus }) {
  const ladders = value.gpus.flatMap(({ ladder }) => ladder ?? []);
  const mean = meanLadder(ladders);
  return (
    <section class="gpu-all rows" aria-labelledby="all-gpus">
      <h2 id="all-gpus">All {plural(value.gpus.length, "GPU")}</h2>
      {value.note && <p class="weak">{asSentence(value.note)}</p>}
      {mean && (
        <>
          <p class="bold">{lossSentence(mean)}</p>
          <h3>Mean, from their launches</h3>
          <GpuLadder ladder={mean} name="all GPUs" />
          <HowCounted ladder={mean} />
          <ul class="rows fine gap-4">
            {RUNGS.filter(({ key }) => mean[key] !== undefined).map(({ key }) => (
              <li key={key}>{spreadSentence(value.gpus, key)}</li>
            ))}
          </ul>
          <p>{lossesSentence(value.gpus)}</p>
        </>
      )}
      <p class="weak">Choose one in the table or above it for its card.</p>
    </section>
  );
}

export const view: View = {
  name: NAME,
  title: "GPUs",
  place: 9,
  component: DevicesPage,
  chosen: ["row"],
  analysis: "utilisation",
};

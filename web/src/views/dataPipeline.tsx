// Page 7: how a batch reaches the training: stages and queue, which of them holds the step up, and what more workers would gain.

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { css, groupColor } from "../base/color";
import type { Group } from "../base/kinds.generated";
import { asSentence, lineText, shortName } from "../base/names";
import { formatCount, formatShare } from "../base/quantity";
import { formatDuration, formatMoment, length } from "../base/time";
import { fetchPipelines, type Pipeline, type Stage } from "../data/batchPipeline";
import type { Run } from "../data/run";
import { load, useSession } from "../data/session";
import { fetchSearch, type Hit } from "../data/spanHits";
import { type AnalysisTable, fetchAnalysis, numberIn, textIn } from "../data/tables/analysisTable";
import type { View } from "../state/view";
import { Button } from "../widgets/controls";
import { PartBar, PartList, timedPart } from "../widgets/figures";
import { Await, AwaitWithRun } from "../widgets/Loading";
import {
  boundWith,
  gainSentence,
  queueSentence,
  STAGE_TITLES,
  utilisationText,
  verdictSentence,
} from "../widgets/pipelineWords";
import { jumpTo } from "../widgets/showOnTimeline";

const GROUP_OF_STAGE: Readonly<Record<string, Group>> = {
  fetch: "data",
  queue: "data",
  copy: "copy",
  compute: "compute",
  host: "host",
};
/** What a stage costs the step: of the first two, that the loop waits for them. */
const EXPOSED_TITLES: Readonly<Record<string, string>> = {
  fetch: "waiting for data",
  queue: "waiting for data",
  copy: "copying to the GPU",
  compute: "training",
  host: "host",
};
/** Places in the drawing of the queue. */
const SLOTS = 12;
/** Parts of the step narrower than this carry no label. */
const NARROWEST_SHARE = 0.05;
const MOST_WAITS = 10;
const TRANSFORMS = "data_transforms";
const MOST_TRANSFORMS = 24;

function DataPipelinePage() {
  const session = useSession();
  const pipelines = useMemo(() => load(() => fetchPipelines(session.api)), [session]);
  return (
    <AwaitWithRun of={pipelines.value} what="Looking at the data pipeline">
      {(run, { of, about, note }) =>
        of.length ? <Pipelines all={of} about={about} run={run} /> : <None note={note} />
      }
    </AwaitWithRun>
  );
}

function None({ note }: { note: string }) {
  return (
    <div class="empty">
      <p>
        <b>There is no data pipeline to show:</b> {note}.
      </p>
      <p>
        A loop over PyTorch’s DataLoader is recorded, with its workers, by <code>strobe run train.py</code>.
      </p>
    </div>
  );
}

const nameOf = (one: Pipeline): string => (one.rank === undefined ? `process ${one.process}` : `rank ${one.rank}`);

function Pipelines({ all, about, run }: { all: readonly Pipeline[]; about: string; run: Run }) {
  const session = useSession();
  const { process } = session.state.value;
  // Unless one was chosen, the one that waits longest.
  const worst = all.reduce((a, b) => (b.waitNs / b.durationNs > a.waitNs / a.durationNs ? b : a));
  const one = all.find((each) => each.process === process) ?? worst;
  return (
    <div class="overview rows gap-14">
      <section
        class={`verdict row gap-14 ${one.inputBound === "not" ? "" : "verdict-input-bound"}`}
        aria-label="Verdict"
      >
        <span class="badge fixed">
          {one.inputBound === "not" ? "not input-bound" : `${one.inputBound} input-bound`}
        </span>
        <p>{verdictSentence(one)}</p>
      </section>
      {all.length > 1 && (
        <div class="filters pipeline-ranks row wraps" role="toolbar" aria-label="Whose pipeline">
          {all.map((each) => (
            <Button
              class="chip row"
              key={each.process}
              aria-pressed={each === one}
              onClick={() => session.update({ process: each.process })}
            >
              {nameOf(each)} <span class="weak">waits {formatShare(each.waitNs / each.durationNs)}</span>
            </Button>
          ))}
        </div>
      )}
      <section class="card surface" aria-labelledby="stages-title">
        <header>
          <h2 id="stages-title">The way of a batch</h2>
          <span class="weak">
            times are means of a step of {formatDuration(one.durationNs)}; {about}
          </span>
        </header>
        <ol class="stages wraps">
          {one.stages.map((stage) => (
            <StageBox key={stage.stage} stage={stage} pipeline={one} />
          ))}
        </ol>
        <Exposed stages={one.stages} durationNs={one.durationNs} />
      </section>
      <Transforms />
      <div class="columns rows gap-14">
        <Gain pipeline={one} />
        <Waits run={run} />
      </div>
    </div>
  );
}

function StageBox({ stage, pipeline }: { stage: Stage; pipeline: Pipeline }) {
  const theme = useSession().theme.value;
  const color = css(groupColor(GROUP_OF_STAGE[stage.stage] ?? "other", theme));
  const queue = stage.stage === "queue";
  const filled = Math.round((stage.utilisation ?? 0) * SLOTS);
  return (
    <li class={`stage anchor rows gap-6 fine${queue ? " queue" : ""}${stage.bottleneck ? " bottleneck" : ""}`}>
      <h3>{STAGE_TITLES[stage.stage] ?? stage.stage}</h3>
      <p class="weak">{stage.doneBy}</p>
      {queue ? (
        <div class="slots" role="img" aria-label={utilisationText(stage) || "how full it was is unknown"}>
          {Array.from({ length: SLOTS }, (_, i) => (
            <span key={i} style={i >= SLOTS - filled ? { background: color } : {}} />
          ))}
        </div>
      ) : (
        <div class="busy" role="img" aria-label={utilisationText(stage) || "how busy it is, is unknown"}>
          <span style={{ width: `${100 * Math.min(1, stage.utilisation ?? 0)}%`, background: color }} />
        </div>
      )}
      <p>{queue ? queueSentence(pipeline) : utilisationText(stage) || " "}</p>
      <p class="stage-time">
        <b>{stage.timeNs === undefined ? "not recorded" : formatDuration(stage.timeNs)}</b>{" "}
        <span class="weak">{queue ? "of waiting" : "of work"}</span>
      </p>
      {stage.bottleneck && <p class="warning">▲ the step goes at its pace</p>}
    </li>
  );
}

/** The step as a bar: what only one stage accounts for. */
function Exposed({ stages, durationNs }: { stages: readonly Stage[]; durationNs: number }) {
  const theme = useSession().theme.value;
  const parts = stages
    .filter(({ exposedNs }) => exposedNs > 0)
    .map(({ stage, exposedNs }) => ({
      name: stage,
      title: EXPOSED_TITLES[stage] ?? stage,
      ns: exposedNs,
      share: durationNs > 0 ? exposedNs / durationNs : 0,
      color: groupColor(GROUP_OF_STAGE[stage] ?? "other", theme),
    }));
  const text = parts.map(({ title, ns }) => `${title} ${formatDuration(ns)}`).join(", ");
  return (
    <>
      <PartBar
        label={`What a step is made of: ${text}`}
        parts={parts.map((part) => timedPart(part, NARROWEST_SHARE))}
      />
      <PartList parts={parts} />
      <p class="weak found fine">
        Exposed time: not hidden by an earlier stage (training, then copies, waits, and the host)
      </p>
    </>
  );
}

function Gain({ pipeline }: { pipeline: Pipeline }) {
  const most = Math.max(4, 2 * (pipeline.neededWorkers ?? 2), pipeline.workers ?? 0);
  const workers = useSignal<number | undefined>(undefined);
  const count = Math.min(most, workers.value ?? Math.max(1, pipeline.neededWorkers ?? pipeline.workers ?? 1));
  const bound = boundWith(pipeline, count);
  const rows: readonly (readonly [string, number])[] = [
    ["now", pipeline.durationNs],
    ["expected", pipeline.predictedStepNs],
    ["at best", pipeline.bestStepNs],
  ];
  const gain = gainSentence(pipeline);
  return (
    <section class="card surface" aria-labelledby="gain-title">
      <header>
        <h2 id="gain-title">{gain ? "What more workers would gain" : "What to do"}</h2>
      </header>
      {gain && (
        <>
          <p>{gain}</p>
          <dl class="gain-bars rows gap-6">
            {rows.map(([title, ns]) => (
              <div class="cells" key={title}>
                <dt>{title}</dt>
                <dd>
                  <span style={{ width: `${(100 * ns) / pipeline.durationNs}%` }} />
                </dd>
                <dd class="number">{formatDuration(ns)}</dd>
              </div>
            ))}
          </dl>
          {bound !== undefined && (
            <label class="workers rows fine gap-5">
              <span>
                {count} {count === 1 ? "worker" : "workers"}: no step below <b>{formatDuration(bound)}</b>
              </span>
              <input
                type="range"
                min={1}
                max={most}
                value={count}
                onInput={(event) => (workers.value = Number(event.currentTarget.value))}
              />
              <span class="weak">a model: stages side by side run at the pace of the slowest</span>
            </label>
          )}
        </>
      )}
      <p class="bold">{asSentence(pipeline.advice)}</p>
    </section>
  );
}

/** What the loader spends its time in, in all processes and threads: each call before those inside it. */
function Transforms() {
  const session = useSession();
  const found = useMemo(() => load(() => fetchAnalysis(session.api, TRANSFORMS)), [session]);
  return (
    <section class="card surface transforms" aria-labelledby="transforms-title">
      <header>
        <h2 id="transforms-title">What the loader does</h2>
        <span class="weak">all workers, the whole run; calls inside a function are below it</span>
        <span class="spacer" />
        <Button
          class="link"
          onClick={() => session.update({ page: "analyses", analysis: { name: TRANSFORMS, options: {} } }, "push")}
        >
          As a table
        </Button>
      </header>
      <Await of={found.value} what="Summing up the transforms">
        {(table) =>
          table.rows ? (
            <ol class="rows gap-2 fine" aria-label="Transforms">
              {Array.from({ length: Math.min(MOST_TRANSFORMS, table.rows) }, (_, row) => (
                <Transform key={row} table={table} row={row} />
              ))}
            </ol>
          ) : (
            <p class="weak">{asSentence(table.note)}</p>
          )
        }
      </Await>
    </section>
  );
}

function Transform({ table, row }: { table: AnalysisTable; row: number }) {
  const session = useSession();
  const value = (column: string): number => numberIn(table, column, row) ?? 0;
  const name = textIn(table, "name", row);
  const line = lineText(textIn(table, "file", row), value("line"));
  return (
    <li class="cells">
      <span style={{ paddingLeft: `${14 * value("depth")}px` }}>
        <Button
          class="plain ellipsis"
          title={`${name} ${line}: find it on the timeline`}
          onClick={() => session.update({ page: "timeline", find: name }, "push")}
        >
          {shortName(name)}
        </Button>
      </span>
      <span class="bar">
        <span style={{ width: `${100 * value("share")}%` }} />
      </span>
      <span class="number">{formatShare(value("share"))}</span>
      <span class="number">{formatDuration(value("total_ns"))}</span>
      <span class="number weak">
        {formatCount(value("calls"))} × {formatDuration(value("avg_ns"))}
      </span>
    </li>
  );
}

/** The longest waits for data, each a way to the timeline. */
function Waits({ run }: { run: Run }) {
  const session = useSession();
  const found = useMemo(() => load(() => fetchSearch(session.api, "group:data", 1)), [session]);
  const show = (hit: Hit): void => jumpTo(session, run, hit);
  return (
    <section class="card surface spans-behind rows" aria-labelledby="waits-title">
      <header>
        <h2 id="waits-title">Longest spans of the pipeline</h2>
        <span class="weak">waits, and work of recorded workers</span>
      </header>
      <Await of={found.value} what="Looking for them">
        {({ hits }) => (
          <ol class="rows gap-2 fine">
            {hits.slice(0, MOST_WAITS).map((hit) => (
              <li class="rows gap-12" key={`${hit.location}-${hit.startNs}-${hit.depth}`}>
                <Button class="link" title="Show it on the timeline" onClick={() => show(hit)}>
                  {formatMoment(hit.startNs, Math.max(1000, length(run.bounds) / 100_000))}
                </Button>
                <span class="weak ellipsis" title={hit.name}>
                  {run.locations[hit.location]?.name}, {hit.name}
                </span>
                <span class="number">{formatDuration(hit.durationNs)}</span>
              </li>
            ))}
          </ol>
        )}
      </Await>
    </section>
  );
}

export const view: View = { name: "data", title: "Data pipeline", place: 7, component: DataPipelinePage };

// The iteration stack on the screen: what to compare, in which order; the picture; facts about the step that is chosen.
import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { absentColor, css, extraColor, relativeColor, type Theme } from "../base/color";
import { shortName } from "../base/names";
import { formatCount, plural } from "../base/quantity";
import { formatDuration } from "../base/time";
import { ABSENT, fetchStack, type Stack, USUAL } from "../data/iterationStack";
import { load, useLasting, useSession } from "../data/session";
import type { Position } from "../data/wire/wire.generated";
import {
  STACK_METRICS,
  STACK_SORTS,
  STACK_WIDTHS,
  type StackMetric,
  type StackView,
  type StackWidths,
} from "../state/address";
import { Button, Choices } from "../widgets/controls";
import { Await } from "../widgets/Loading";
import { showRange } from "../widgets/showOnTimeline";
import { useDrawing, useSize } from "../widgets/useSize";
import { columnGroups } from "./columnGroups";
import { type Cursor, drawMarks, drawStack, FRAME, type Marks, rowOf, type StackScene } from "./drawStack";
import { GroupHeadings, useFold } from "./GroupHeadings";
import { pathSentence } from "./pathWords";
import { StepFacts } from "./StepFacts";
import { columnAt, columnEdges, rowHeight } from "./stackGrid";
import { factorText } from "./stepDifferences";

type Props = {
  readonly lit: ReadonlySet<string>;
  readonly onHover: (names: readonly string[]) => void;
};

const titleOf = (choice: string): string => (choice === "gap" ? "gap before" : choice);
/** Steps of the height asked for, so that resizing a window does not ask anew for every pixel. */
const HEIGHT_STEP = 128;

export function StackPanel({ lit, onHover }: Props) {
  const session = useSession();
  const view = session.state.value.stack;
  const body = useRef<HTMLDivElement>(null);
  const { height } = useSize(body).value;
  const rows = Math.ceil(height / HEIGHT_STEP) * HEIGHT_STEP;
  const { metric, sort } = view;
  const { level } = session.state.value;
  const fold = view.folded.join("~");
  const loaded = useMemo(
    () => (rows ? load(() => fetchStack(session.api, metric, sort, rows, fold, level)) : undefined),
    [session, metric, sort, rows, fold, level],
  );
  const shown = useLasting(loaded?.value);
  const empty = shown.status === "ready" && !shown.value.step.length;
  return (
    <section class="stack vertical" aria-labelledby="stack-title">
      <header class="row">
        <h2 id="stack-title">Iterations</h2>
        {shown.status === "ready" && !empty && <Scope stack={shown.value} />}
        <span class="spacer" />
        {view.folded.length > 0 && (
          <Button class="quiet" onClick={() => change({ folded: [] })}>
            unfold all
          </Button>
        )}
        {!empty && (
          <>
            <Choices
              choices={STACK_METRICS}
              value={metric}
              titleOf={titleOf}
              onChoose={(one) => change({ metric: one })}
            />
            <Choices words="by" choices={STACK_SORTS} value={sort} onChoose={(one) => change({ sort: one })} />
            <Choices
              words="width"
              choices={STACK_WIDTHS}
              value={view.widths}
              onChoose={(one) => change({ widths: one })}
            />
          </>
        )}
      </header>
      {shown.status === "ready" && pathSentence(shown.value) && (
        <p class="path-sentence fine">{pathSentence(shown.value)}</p>
      )}
      <div class="stack-body anchor fill" ref={body}>
        <Await of={shown} what="Stacking up the steps">
          {(stack) =>
            stack.step.length ? (
              <Picture stack={stack} view={view} lit={lit} onHover={onHover} />
            ) : (
              <NoStack stack={stack} />
            )
          }
        </Await>
      </div>
      {shown.status === "ready" && shown.value.step.length > 0 && (
        <>
          <ScaleLegend stack={shown.value} metric={metric} />
          <StepFacts positions={shown.value.positions} />
        </>
      )}
    </section>
  );

  function change(part: Partial<StackView>): void {
    session.update({ stack: { ...session.state.value.stack, ...part } });
  }
}

function Scope({ stack }: { stack: Stack }) {
  const notes = [
    stack.folded > 0 && `${formatCount(stack.folded)} steps were kept as statistics only, or but for their end`,
    stack.thinned > 0 && `${formatCount(stack.thinned)} steps are left out: there are too many`,
    stack.shown > stack.step.length && `each of the ${formatCount(stack.step.length)} rows stands for several steps`,
  ].filter(Boolean);
  const of = stack.shown < stack.steps ? `${formatCount(stack.shown)} of ` : "";
  return (
    <span class="weak" title={notes.join("\n")}>
      {of}
      {plural(stack.steps, "step")} × {formatCount(stack.position_count)}
    </span>
  );
}

function NoStack({ stack }: { stack: Stack }) {
  if (stack.folded > 0)
    return (
      <p class="empty">
        All {formatCount(stack.folded)} steps were kept as statistics only, so there are no positions to compare. Keep
        some in detail with <code>strobe run --keep 10</code>
      </p>
    );
  return <p class="empty">No steps to stack up: {stack.reason.replace(/^none: /, "")}.</p>;
}

function ScaleLegend({ stack, metric }: { stack: Stack; metric: string }) {
  const theme = useSession().theme.value;
  const stops = Array.from({ length: 17 }, (_, i) => css(relativeColor(i / 8 - 1, theme))).join(", ");
  return (
    <div class="scale-legend row weak finer">
      <span>⅛</span>
      <span class="scale-bar fixed" style={{ background: `linear-gradient(90deg, ${stops})` }} aria-hidden="true" />
      <span>8 × the median of the column</span>
      <span class="legend-entry row gap-5">
        <i style={{ background: css(absentColor(theme)) }} /> not in this step
      </span>
      {stack.extra.some((extra) => extra > 0) && (
        <span class="legend-entry row gap-5">
          <i style={{ background: css(extraColor(theme)) }} /> does more than the usual path
        </span>
      )}
      <span class="spacer" />
      <span class="stack-keys">
        <kbd>↑</kbd>
        <kbd>↓</kbd>
        <kbd>←</kbd>
        <kbd>→</kbd> walk <kbd>F</kbd> fold <kbd>N</kbd> next outlier <kbd>G</kbd>{" "}
        {metric === "gap" ? "durations" : "gaps"} <kbd>Enter</kbd> timeline
      </span>
    </div>
  );
}

function Picture({ stack, view, lit, onHover }: { stack: Stack; view: StackView } & Props) {
  const session = useSession();
  const theme = session.theme.value;
  const box = useRef<HTMLDivElement>(null);
  const [base, marks] = [useRef<HTMLCanvasElement>(null), useRef<HTMLCanvasElement>(null)];
  const size = useSize(box);
  const cursor = useSignal<Cursor | undefined>(undefined);
  const scratch = useMemo(() => new OffscreenCanvas(1, 1), []);
  const scene = useMemo(
    () => sceneOf(stack, view, theme, size.value.width, size.value.height),
    [stack, view, theme, size.value],
  );
  const { step } = session.state.value;
  const fold = useFold();

  const drawBase = (context: CanvasRenderingContext2D): void => {
    drawStack(context, scratch, scene);
    performance.mark("stack-picture");
  };
  useDrawing(base, scene, drawBase, [scene, scratch]);
  const shown: Marks = { cursor: cursor.value, step, lit };
  useDrawing(marks, scene, (context) => drawMarks(context, scene, shown), [scene, cursor.value, step, lit]);

  const move = (next: Cursor | undefined): void => {
    const now = cursor.peek();
    if (next?.row === now?.row && next?.column === now?.column) return;
    cursor.value = next;
    const name = next && stack.positions[next.column]?.name;
    if (next?.column !== now?.column) onHover(name ? [name] : []);
  };
  const at = (event: MouseEvent): Cursor | undefined => {
    const row = Math.floor((event.offsetY - FRAME.top) / scene.rowHeight);
    const x = event.offsetX - FRAME.left;
    if (row < 0 || row >= stack.step.length || x > (scene.edges.at(-1) ?? 0)) return undefined;
    return { row, column: Math.max(0, columnAt(scene.edges, Math.min(x, (scene.edges.at(-1) ?? 1) - 0.01))) };
  };
  const choose = (chosen: Cursor): void => {
    const name = stack.positions[chosen.column];
    session.update({ step: stack.step[chosen.row], region: name && isRegion(stack, chosen.column) ? name.name : "" });
  };
  const showStep = (row: number): void => {
    const startNs = stack.start_ns[row];
    if (startNs === undefined) return;
    showRange(session, { startNs, endNs: startNs + (stack.step_ns[row] ?? 0) }, { step: stack.step[row] });
  };
  const walk = (rows: number, columns: number): void => {
    const chosenRow = step === undefined ? -1 : rowOf(stack, step);
    const from = cursor.peek() ?? { row: Math.max(0, chosenRow), column: 0 };
    const next = {
      row: Math.min(stack.step.length - 1, Math.max(0, from.row + rows)),
      column: Math.min(stack.positions.length - (scene.metric === "gap" ? 1 : 2), Math.max(0, from.column + columns)),
    };
    move(next);
    choose(next);
  };
  const nextOutlier = (): void => {
    const from = cursor.peek()?.row ?? (step === undefined ? -1 : rowOf(stack, step));
    const rows = stack.outlier.flatMap((outlier, row) => (outlier ? [row] : []));
    const row = rows.find((one) => one > from) ?? rows[0];
    if (row === undefined) {
      session.notify("No step is an outlier");
      return;
    }
    const next = { row, column: cursor.peek()?.column ?? 0 };
    move(next);
    choose(next);
  };
  const actions: Readonly<Record<string, () => void>> = {
    ArrowUp: () => walk(-1, 0),
    ArrowDown: () => walk(1, 0),
    ArrowLeft: () => walk(0, -1),
    ArrowRight: () => walk(0, 1),
    PageUp: () => walk(-20, 0),
    PageDown: () => walk(20, 0),
    KeyN: nextOutlier,
    KeyF: () => {
      const column = cursor.peek()?.column ?? -1;
      fold([...scene.modules, ...scene.parts].find((one) => one.from <= column && column < one.to));
      move(undefined);
    },
    KeyG: () => session.update({ stack: { ...view, metric: view.metric === "gap" ? "duration" : "gap" } }),
    Enter: () => {
      const row = cursor.peek()?.row ?? (step === undefined ? -1 : rowOf(stack, step));
      if (row >= 0) showStep(row);
    },
    // What was chosen is taken back by the page, as everywhere.
    Escape: () => move(undefined),
  };
  const under = cursor.value;
  return (
    <>
      <div
        class="stack-picture"
        ref={box}
        role="application"
        tabindex={0}
        aria-label={summary(stack)}
        onPointerMove={(event) => move(at(event))}
        onPointerLeave={() => move(undefined)}
        onClick={(event) => {
          const chosen = at(event);
          if (chosen) choose(chosen);
        }}
        onDblClick={(event) => {
          const chosen = at(event);
          if (chosen) showStep(chosen.row);
        }}
        onKeyDown={(event) => {
          const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actions[event.code];
          if (!action) return;
          event.preventDefault();
          action();
        }}
      >
        <canvas ref={base} />
        <canvas ref={marks} class="marks" />
        {under && <CellTooltip stack={stack} cursor={under} scene={scene} />}
        <p class="spoken" aria-live="polite">
          {under && spoken(stack, under)}
        </p>
      </div>
      <GroupHeadings scene={scene} />
    </>
  );
}

/** The last column is the end of the step: there is nothing that is called so. */
const isRegion = (stack: Stack, column: number): boolean => column < stack.positions.length - 1;

/** The end of the step has a gap but no duration: where durations are compared, its column has no width. */
function edgesOf(
  positions: readonly Position[],
  metric: StackMetric,
  width: number,
  widths: StackWidths,
): Float64Array {
  const times = positions.map((p) => (metric === "gap" ? p.median_gap_ns : p.median_ns));
  const folded = positions.map((p) => p.folded);
  if (metric === "gap" || times.length < 2) return columnEdges(times, width, widths, folded);
  return Float64Array.of(...columnEdges(times.slice(0, -1), width, widths, folded), width);
}

function sceneOf(stack: Stack, view: StackView, theme: Theme, width: number, height: number): StackScene {
  const metric = stack.metric === "gap" ? "gap" : "duration";
  const sorted = [...stack.step_ns].sort((a, b) => a - b);
  return {
    stack,
    metric,
    sort: view.sort,
    theme,
    width,
    height,
    pixelRatio: devicePixelRatio,
    parts: columnGroups(stack.positions, false),
    modules: stack.positions.some(({ module }) => module) ? columnGroups(stack.positions, true) : [],
    edges: edgesOf(stack.positions, metric, Math.max(1, width - FRAME.left - FRAME.right), view.widths),
    rowHeight: rowHeight(stack.step.length, height - FRAME.top - FRAME.bottom),
    usualNs: Math.max(1, sorted[sorted.length >> 1] ?? 1),
  };
}

/** A cell in words, as exact as a byte is. */
export function cellText(stack: Stack, { row, column }: Cursor): string {
  const byte = stack.cells[row * stack.positions.length + column] ?? ABSENT;
  const position = stack.positions[column];
  if (byte === ABSENT || !position) return "not in this step";
  const usual = stack.metric === "gap" ? position.median_gap_ns : position.median_ns;
  const octaves = ((byte - USUAL) * stack.octaves) / 127;
  const about = byte === 255 ? "more than " : byte === 1 ? "less than " : "";
  const what = stack.metric === "gap" ? "gap " : "";
  if (Math.abs(octaves) < 0.1) return `${what}as usual: ${formatDuration(usual)}`;
  if (octaves < 0) return `${what}${about}${Math.round(100 * 2 ** octaves)} % of usual (${formatDuration(usual)})`;
  return `${what}${about}${factorText(2 ** octaves)} usual (${formatDuration(usual)})`;
}

const spoken = (stack: Stack, cursor: Cursor): string =>
  `step ${stack.step[cursor.row]}, ${shortName(stack.positions[cursor.column]?.name ?? "")}: ${cellText(stack, cursor)}`;

function CellTooltip({ stack, cursor, scene }: { stack: Stack; cursor: Cursor; scene: StackScene }) {
  const { row, column } = cursor;
  const position = stack.positions[column];
  const byte = stack.cells[row * stack.positions.length + column] ?? ABSENT;
  const x = FRAME.left + (scene.edges[column + 1] ?? 0);
  const y = FRAME.top + (row + 1) * scene.rowHeight;
  const color = byte === ABSENT ? absentColor(scene.theme) : relativeColor((byte - USUAL) / 127, scene.theme);
  const count = stack.count[row] ?? 1;
  const style = {
    ...(x > scene.width * 0.55 ? { right: `${scene.width - x + 14}px` } : { left: `${x + 10}px` }),
    ...(y > scene.height * 0.7 ? { bottom: `${scene.height - y + 14}px` } : { top: `${y + 10}px` }),
  };
  return (
    <div class="tooltip" style={style} role="tooltip">
      <div class="tooltip-name row bold">
        <i style={{ background: css(color) }} />
        {shortName(position?.name ?? "")}
        {(position?.count ?? 1) > 1 && ` and ${(position?.count ?? 1) - 1} neighbours`}
      </div>
      <div>{cellText(stack, cursor)}</div>
      <div class="weak">
        {(position?.band ?? "") !== stack.positions.at(-1)?.band && `${position?.band} · `}
        {position?.module && `${shortName(position.module)} · `}
        step {stack.step[row]}
        {count > 1 && ` (of ${count})`} · {stack.class[row]} · {formatDuration(stack.step_ns[row] ?? 0)}
        {stack.outlier[row] && " · ▲ outlier"}
        {(stack.extra[row] ?? 0) > 0 && ` · ${plural(stack.extra[row] ?? 0, "extra event")}`}
      </div>
    </div>
  );
}

function summary(stack: Stack): string {
  const outliers = stack.step.filter((_, row) => stack.outlier[row]);
  const others = stack.extra.filter((extra) => extra > 0).length;
  return (
    `Iteration stack: ${stack.step.length} rows of steps, ${stack.positions.length} columns of positions; ` +
    `${outliers.length} outliers${outliers.length ? ` (${outliers.slice(0, 12).join(", ")})` : ""}; ` +
    `${others} steps do more than the usual path`
  );
}

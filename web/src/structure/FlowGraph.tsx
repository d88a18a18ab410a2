// The folded flow graph: what runs after what. Laid out by dagre, which is fetched only where there is a graph.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { css, groupColor, heatColor, type Theme } from "../base/color";
import { listeners, within } from "../base/events";
import { formatCount } from "../base/quantity";
import { formatDuration } from "../base/time";
import { load, useSession } from "../data/session";
import type { Structure } from "../data/wire/wire.generated";
import { Await } from "../widgets/Loading";
import { type Size, useSize } from "../widgets/useSize";
import { type Flow, flowOf, type ShownEdge, type ShownNode } from "./shownFlow";

type Point = { readonly x: number; readonly y: number };
type Placed = {
  readonly nodes: readonly (ShownNode & Point)[];
  readonly edges: readonly (ShownEdge & { readonly path: string })[];
  readonly width: number;
  readonly height: number;
};

const MARGIN = 14;
/** Graphs are not drawn larger than this on their own. */
const LARGEST = 1.5;

/** Places nodes from top to bottom; edges are smooth lines through dagre's bends. */
async function place(flow: Flow): Promise<Placed> {
  const { Graph, layout } = await import("@dagrejs/dagre");
  const graph = new Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 16, ranksep: 24, edgesep: 9 });
  for (const { node, width, height } of flow.nodes) graph.setNode(String(node.id), { width, height });
  // What goes up takes no part in it: those edges are drawn around the others, else each would need a lane of its own.
  const down = flow.edges.filter((one) => !one.up);
  for (const { edge } of down) {
    const weight = 1 + Math.round(4 * Math.log1p(edge.count));
    graph.setEdge(String(edge.source), String(edge.target), { weight });
  }
  layout(graph);
  const nodes = flow.nodes.map((one) => {
    const { x = 0, y = 0 } = graph.node(String(one.node.id)) as Partial<Point>;
    return { ...one, x, y };
  });
  const byId = new Map(nodes.map((one) => [one.node.id, one]));
  const edges = flow.edges.map((one) => {
    const [from, to] = [byId.get(one.edge.source), byId.get(one.edge.target)];
    if (one.up && from && to) return { ...one, points: around(from, to) };
    const found = graph.edge({ v: String(one.edge.source), w: String(one.edge.target) });
    return { ...one, points: (found as { points?: readonly Point[] } | undefined)?.points ?? [] };
  });
  // Edges reach beyond the size that dagre returns.
  const bends = edges.flatMap((edge) => edge.points);
  const xs = [...nodes.flatMap((n) => [n.x - n.width / 2, n.x + n.width / 2]), ...bends.map((point) => point.x)];
  const ys = [...nodes.flatMap((n) => [n.y - n.height / 2, n.y + n.height / 2]), ...bends.map((point) => point.y)];
  const [left, top] = [Math.min(...xs) - MARGIN, Math.min(...ys) - MARGIN];
  const shift = ({ x, y }: Point): Point => ({ x: x - left, y: y - top });
  return {
    nodes: nodes.map((one) => ({ ...one, ...shift(one) })),
    edges: edges.map((one) => ({ ...one, path: smooth(one.points.map(shift)) })),
    width: Math.max(...xs) + MARGIN - left,
    height: Math.max(...ys) + MARGIN - top,
  };
}

/** The way up from one node to another: out of its left side, in a wide bow, into the left side of the other. */
function around(from: ShownNode & Point, to: ShownNode & Point): Point[] {
  const [start, end] = [from.x - from.width / 2, to.x - to.width / 2];
  const bow = Math.min(start, end) - 12 - 0.07 * Math.abs(from.y - to.y);
  return [
    { x: start, y: from.y },
    { x: bow, y: from.y },
    { x: bow, y: to.y },
    { x: end, y: to.y },
  ];
}

/** A smooth line through points: quadratic curves between the middles of neighbours. */
function smooth(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = points.at(-1);
  if (!first || !last) return "";
  const bends = rest.slice(0, -1).map((point, i) => {
    const next = rest[i + 1] ?? last;
    const end = i === rest.length - 2 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    return `Q${point.x.toFixed(1)} ${point.y.toFixed(1)} ${end.x.toFixed(1)} ${end.y.toFixed(1)}`;
  });
  return `M${first.x.toFixed(1)} ${first.y.toFixed(1)}${bends.length ? bends.join("") : `L${last.x} ${last.y}`}`;
}

type Props = {
  readonly structure: Structure;
  /** The whole run, with what comes before and after the loop, or only what the steps do. */
  readonly whole: boolean;
  /** Of how many steps the graph is; undefined: of all. */
  readonly keptSteps: number | undefined;
  /** Names that stand out: of the chosen region, or under the pointer on another part of the page. */
  readonly lit: ReadonlySet<string>;
  /** Names of operators that hold others, and those of them whose insides are shown. */
  readonly holds: ReadonlySet<string>;
  readonly opened: ReadonlySet<string>;
  readonly onOpen: (names: readonly string[], open: boolean) => void;
  readonly onNames: (names: readonly string[]) => void;
  readonly onHover: (names: readonly string[]) => void;
};

type Marking = Pick<Props, "lit" | "onNames" | "onHover" | "holds" | "opened" | "onOpen">;

export function FlowGraph({ structure, whole, keptSteps, ...marking }: Props) {
  const flow = useMemo(() => flowOf(structure, whole), [structure, whole]);
  const placed = useMemo(() => load(() => place(flow)), [flow]);
  const { graph } = structure;
  if (!flow.nodes.length)
    return (
      <p class="empty">
        {graph.nodes.length
          ? "Nothing to show of the steps: see the whole run."
          : "No graph: nothing comes back to where it began."}
      </p>
    );
  return (
    <Await of={placed.value} what="Laying out the graph">
      {(value) => (
        <>
          <Drawing placed={value} {...marking} />
          <p class="graph-key weak finer">
            <span class="key-line" /> width: how often · colour: time <span class="key-line dashed" /> rare path ·
            double click: whole graph
            {marking.holds.size > 0 && " · +: what it calls"}
            {keptSteps !== undefined && ` · of the ${formatCount(keptSteps)} steps in detail`}
            {flow.left > 0 &&
              ` · ${formatCount(flow.left)} ${whole ? "short nodes" : "nodes of the rest of the run"} left out`}
            {graph.overflow && " · the program had more nodes than are kept"}
          </p>
        </>
      )}
    </Await>
  );
}

type View = { readonly x: number; readonly y: number; readonly scale: number };

function Drawing({ placed, ...marking }: { placed: Placed } & Marking) {
  const theme = useSession().theme.value;
  const box = useRef<HTMLDivElement>(null);
  const view = useSignal<View | undefined>(undefined);
  const size = useSize(box);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    return attachMoves(
      element,
      () => view.peek() ?? wide(placed, size.peek()),
      (next) => {
        // A double click shows everything, another one the beginning again.
        view.value = next ?? (view.peek() ? undefined : fitting(placed, size.peek()));
      },
    );
  }, [placed, size, view]);
  const { x, y, scale } = view.value ?? wide(placed, size.value);
  return (
    <section
      class="graph fill"
      ref={box}
      aria-label={`Flow graph: ${placed.nodes.length} nodes, ${placed.edges.length} transitions`}
    >
      <svg role="presentation">
        <defs>
          <marker
            id="arrow"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0.5 L8 4 L0 7.5 Z" fill="context-stroke" />
          </marker>
        </defs>
        <g transform={`translate(${x} ${y}) scale(${scale})`}>
          {placed.edges.map((one) => (
            <path
              key={`${one.edge.source}-${one.edge.target}`}
              d={one.path}
              class={one.rare ? "graph-edge rare" : "graph-edge"}
              stroke={css(edgeColor(one.share, theme))}
              stroke-width={one.width}
              marker-end="url(#arrow)"
            >
              <title>{`${formatCount(one.edge.count)} times, ${formatDuration(one.edge.time_ns)} in between`}</title>
            </path>
          ))}
          {placed.nodes.map((one) => (
            <Node key={one.node.id} one={one} theme={theme} {...marking} />
          ))}
        </g>
      </svg>
    </section>
  );
}

/** Moves with the wheel and by dragging, zooms with Ctrl and the wheel; a double click asks for the usual view. */
function attachMoves(element: HTMLElement, now: () => View, change: (view: View | undefined) => void): () => void {
  const { on, stop } = listeners(element);
  let grabbed: Point | undefined;
  on("wheel", (event) => {
    event.preventDefault();
    const { x, y, scale } = now();
    if (!event.ctrlKey && !event.metaKey) {
      change({ x: x - event.deltaX, y: y - event.deltaY, scale });
      return;
    }
    const corner = element.getBoundingClientRect();
    const [px, py] = [event.clientX - corner.left, event.clientY - corner.top];
    const next = Math.min(3, Math.max(0.1, scale * Math.exp(-Math.max(-300, Math.min(300, event.deltaY)) * 0.0022)));
    change({ scale: next, x: px - ((px - x) * next) / scale, y: py - ((py - y) * next) / scale });
  });
  on("pointerdown", (event) => {
    if (within(event, ".graph-node")) return;
    const { x, y } = now();
    grabbed = { x: event.clientX - x, y: event.clientY - y };
    element.setPointerCapture(event.pointerId);
  });
  on("pointermove", (event) => {
    if (grabbed) change({ ...now(), x: event.clientX - grabbed.x, y: event.clientY - grabbed.y });
  });
  const release = (): void => {
    grabbed = undefined;
  };
  on("pointerup", release);
  on("pointercancel", release);
  on("dblclick", (event) => onSign(event) || change(undefined));
  return stop;
}

/** Quick transitions are grey; those that take time are as warm as nodes that do. */
const edgeColor = (share: number, theme: Theme) =>
  share < 0.02 ? (theme === "dark" ? ([92, 101, 117] as const) : ([150, 158, 170] as const)) : heatColor(share, theme);

/** From its beginning, as wide as the page; the whole graph where that is not smaller. */
function wide(placed: Placed, size: Size): View {
  const scale = Math.min(LARGEST, size.width / placed.width);
  const all = fitting(placed, size);
  return all.scale >= scale ? all : { scale, x: (size.width - placed.width * scale) / 2, y: 0 };
}

/** So that everything is seen. */
function fitting(placed: Placed, { width, height }: Size): View {
  if (!width || !height) return { x: 0, y: 0, scale: 1 };
  const scale = Math.min(LARGEST, width / placed.width, height / placed.height);
  return { scale, x: (width - placed.width * scale) / 2, y: (height - placed.height * scale) / 2 };
}

/** Whether a click is one on the sign that opens a node. */
const onSign = (event: Event): boolean => within(event, ".graph-open");

type NodeProps = { one: ShownNode & Point; theme: Theme } & Marking;

function Node({ one, theme, lit, holds, opened, onOpen, onNames, onHover }: NodeProps) {
  const { node, lines, foot, heat, rare, width, height, x, y } = one;
  const names = node.members.length ? node.members : [node.name];
  const [left, top] = [x - width / 2, y - height / 2];
  const isLit = names.some((name) => lit.has(name));
  const choose = (): void => onNames(names);
  const closed = names.filter((name) => holds.has(name) && !opened.has(name));
  const open = names.filter((name) => opened.has(name));
  const toggle = (): void => (closed.length ? onOpen(closed, true) : onOpen(open, false));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a button of HTML cannot stand inside of SVG
    <g
      class={`graph-node${isLit ? " lit" : ""}${rare ? " rare" : ""}`}
      role="button"
      tabindex={0}
      aria-pressed={isLit}
      aria-expanded={closed.length || open.length ? !closed.length : undefined}
      onClick={(event) => (onSign(event) ? toggle() : choose())}
      onKeyDown={(event) => {
        const action = event.key === "Enter" || event.key === " " ? choose : event.key === "+" ? toggle : undefined;
        if (!action) return;
        event.preventDefault();
        event.stopPropagation();
        action();
      }}
      onPointerEnter={() => onHover(names)}
      onPointerLeave={() => onHover([])}
    >
      <title>{`${names.join("\n")}\n${foot}, ${formatDuration(node.time_ns)}${closed.length ? "\n+: show what it calls" : ""}`}</title>
      <rect x={left} y={top} width={width} height={height} rx="6" fill={css(heatColor(heat, theme))} />
      <rect x={left} y={top} width="4" height={height} rx="2" fill={css(groupColor(node.group, theme))} />
      {lines.map((line, i) => (
        <text key={`${i}-${line}`} x={left + 12} y={top + 17 + i * 15}>
          {line}
        </text>
      ))}
      <text x={left + 12} y={top + height - 8} class="foot">
        {foot}
      </text>
      {(closed.length > 0 || open.length > 0) && (
        <g class="graph-open">
          <rect x={left + width - 19} y={top + 3} width="16" height="16" rx="4" />
          <text x={left + width - 11} y={top + 15} text-anchor="middle">
            {closed.length ? "+" : "−"}
          </text>
        </g>
      )}
    </g>
  );
}

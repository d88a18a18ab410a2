// A flame graph on the screen: one canvas that stays in place while its rows scroll, a tooltip, and what a click means.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { GROUP_TITLES } from "../base/color";
import { contextOf } from "../base/visibleText";
import type { CallTree } from "../data/callTree";
import { useSession } from "../data/session";
import { LABEL_FONT, Labels } from "../timeline/drawing/labels";
import { Inks } from "../timeline/drawing/spanColors";
import { Swatch } from "../widgets/figures";
import { useDrawing, useSize } from "../widgets/useSize";
import { depthAt, drawFlame, type FlameScene, flameHeight, ROW_HEIGHT, rowTop } from "./drawFlame";
import { type Flame, nodeAt, spanOf } from "./flameLayout";

/** A name that no region has: with it as the chosen one, all others are faint. */
const NOBODY = "\u0000";
const TOOLTIP_GAP = 14;

type Props = {
  readonly tree: CallTree;
  readonly flame: Flame;
  /** What it shows, in a word or two. */
  readonly title: string;
  /** The picture in words. */
  readonly label: string;
  /** The node of the flame that fills the width; -1: everything does. */
  readonly zoomed: number;
  readonly found?: Uint8Array | undefined;
  readonly up?: boolean;
  /** The tooltip of a node of the flame. */
  readonly facts: (node: number) => string;
  /** A node was clicked, or (-1) the ground. */
  readonly onChoose: (node: number) => void;
  readonly onReset?: () => void;
};

export function FlamePanel(props: Props) {
  const { tree, flame, title, label, zoomed, found, up = false, facts, onChoose, onReset } = props;
  const session = useSession();
  const theme = session.theme.value;
  const { region } = session.state.value;
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(scroller);
  const scrollTop = useSignal(0);
  const pointer = useSignal<{ readonly x: number; readonly y: number } | undefined>(undefined);
  const span = spanOf(flame, zoomed);

  const { width, height } = size.value;
  useEffect(() => {
    const box = scroller.current;
    if (!box || !height) return;
    // What is zoomed to comes into sight; callers grow from the bottom, where their root is.
    const top = rowTop(flame, zoomed < 0 ? 0 : (flame.depth[zoomed] ?? 0), up);
    if (top < box.scrollTop || top + 3 * ROW_HEIGHT > box.scrollTop + height) box.scrollTop = top - height / 3;
  }, [flame, zoomed, up, height]);

  const tools = useMemo(() => {
    const measure = contextOf(new OffscreenCanvas(1, 1));
    if (measure) measure.font = LABEL_FONT;
    const labels = new Labels((text) => measure?.measureText(text).width ?? 0);
    return { inks: new Inks(theme, region), faint: new Inks(theme, NOBODY), labels };
  }, [theme, region]);
  const under = ((): number => {
    const at = pointer.value;
    if (!at || !width) return -1;
    const place = span.from + (at.x / width) * (span.to - span.from);
    return nodeAt(flame, place, depthAt(flame, at.y + scrollTop.value, up));
  })();
  useDrawing(canvas, size.value, (context) => {
    const scene: FlameScene = {
      tree,
      flame,
      span,
      ...size.value,
      scrollTop: scrollTop.value,
      up,
      theme,
      found,
      chosen: zoomed,
      hovered: under,
    };
    const begun = performance.now();
    drawFlame(context, tools, scene);
    performance.measure("flame-picture", { start: begun, end: performance.now() });
  });

  const at = pointer.value;
  const node = flame.of[under] ?? -1;
  return (
    <div class="flame-panel anchor flex fill">
      <section
        class="flame-scroller fill"
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling area must be reachable by keyboard (WCAG 2.1.1).
        tabIndex={0}
        aria-label={title}
        onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
      >
        <div style={{ height: `${Math.max(flameHeight(flame), 1)}px` }}>
          <canvas
            ref={canvas}
            class={under >= 0 ? "flame over" : "flame"}
            style={{ height: `${height}px` }}
            role="img"
            aria-label={label}
            onPointerMove={(event) => {
              const box = event.currentTarget.getBoundingClientRect();
              pointer.value = { x: event.clientX - box.left, y: event.clientY - box.top };
            }}
            onPointerLeave={() => (pointer.value = undefined)}
            onClick={() => onChoose(under)}
            onDblClick={() => onReset?.()}
          />
        </div>
      </section>
      {at && node >= 0 && (
        <div
          class="tooltip"
          role="tooltip"
          style={{
            ...(at.y > height * 0.6
              ? { bottom: `${height - at.y + TOOLTIP_GAP}px` }
              : { top: `${at.y + TOOLTIP_GAP}px` }),
            ...(at.x > width * 0.6
              ? { right: `${width - at.x + TOOLTIP_GAP}px` }
              : { left: `${at.x + TOOLTIP_GAP}px` }),
          }}
        >
          <div class="tooltip-name row bold">
            <Swatch group={tree.group[node] ?? "other"} />
            {tree.name[node]}
          </div>
          <div>{facts(under)}</div>
          <div class="weak">
            {GROUP_TITLES[tree.group[node] ?? "other"].toLowerCase()}
            {tree.device[node] ? " on the GPU" : ""}
          </div>
        </div>
      )}
    </div>
  );
}

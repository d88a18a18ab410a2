// Draws a flame graph: what is wide enough as rectangles with names, the rest as a grey haze.
import { CHROME, css, dimmed, groupColor, type Theme } from "../base/color";
import type { CallTree } from "../data/callTree";
import { LABEL_FONT, type Labels, labelLeft } from "../timeline/drawing/labels";
import type { Inks } from "../timeline/drawing/spanColors";
import { boxes, type Flame, type Span } from "./flameLayout";

export const ROW_HEIGHT = 18;

/** Everything that a picture depends on. Sizes are CSS pixels. */
export type FlameScene = {
  readonly tree: CallTree;
  readonly flame: Flame;
  readonly span: Span;
  readonly width: number;
  readonly height: number;
  readonly scrollTop: number;
  /** Roots are at the bottom, and what is inside above them. */
  readonly up: boolean;
  readonly theme: Theme;
  /** Nodes of the tree that stand out; undefined: all alike. */
  readonly found: Uint8Array | undefined;
  readonly chosen: number;
  readonly hovered: number;
};

export const flameHeight = (flame: Flame): number => (flame.deepest + 1) * ROW_HEIGHT;

/** The depth of the row at a height, and where the row of a depth is; both from the top of all rows. */
export const depthAt = (flame: Flame, y: number, up: boolean): number => {
  const row = Math.floor(y / ROW_HEIGHT);
  return up ? flame.deepest - row : row;
};
export const rowTop = (flame: Flame, depth: number, up: boolean): number =>
  (up ? flame.deepest - depth : depth) * ROW_HEIGHT;

/** What drawing keeps between pictures; `faint` are the inks of what does not stand out. */
type FlameTools = { readonly inks: Inks; readonly faint: Inks; readonly labels: Labels };

export function drawFlame(
  context: CanvasRenderingContext2D,
  { inks, faint, labels }: FlameTools,
  scene: FlameScene,
): void {
  const { tree, flame, width, height, scrollTop, up, theme } = scene;
  const chrome = CHROME[theme];
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  const ends = [depthAt(flame, scrollTop, up), depthAt(flame, scrollTop + height, up)];
  const [first, last] = [Math.max(0, Math.min(...ends)), Math.max(...ends)];
  const haze = css(dimmed(groupColor("other", theme), true, theme));
  for (const { node, depth, left, right } of boxes(flame, scene.span, width, first, last)) {
    const top = rowTop(flame, depth, up) - scrollTop;
    const wide = right - left;
    // A hairline between neighbours, where there is room for one.
    const shown = wide > 3 ? wide - 0.75 : wide;
    if (node < 0) {
      context.fillStyle = haze;
      context.fillRect(left, top, shown, ROW_HEIGHT - 1);
      continue;
    }
    const of = flame.of[node] ?? 0;
    const [group, name] = [tree.group[of] ?? "other", tree.name[of] ?? ""];
    const ink = (scene.found && !scene.found[of] ? faint : inks).get(group, name);
    context.fillStyle = ink.fill;
    context.fillRect(left, top, shown, ROW_HEIGHT - 1);
    if (tree.device[of] && wide > 2) {
      // A stripe marks a GPU's work; colours are those of groups only.
      context.fillStyle = ink.text;
      context.fillRect(left, top + ROW_HEIGHT - 4, shown, 1.5);
    }
    const text = labels.fit(name, wide);
    if (text === undefined) continue;
    context.fillStyle = ink.text;
    context.fillText(text, labelLeft(left), top + (ROW_HEIGHT - 1) / 2 + 0.5);
  }
  outline(context, scene, scene.hovered, chrome.text, 1);
  outline(context, scene, scene.chosen, chrome.accent, 2);
}

function outline(
  context: CanvasRenderingContext2D,
  scene: FlameScene,
  node: number,
  style: string,
  line: number,
): void {
  const { flame, span, width, scrollTop, up } = scene;
  if (node < 0) return;
  const scale = width / (span.to - span.from);
  const from = ((flame.start[node] ?? 0) - span.from) * scale;
  const left = Math.max(0.5, from);
  const right = Math.min(width - 0.5, from + (flame.weight[node] ?? 0) * scale);
  context.strokeStyle = style;
  context.lineWidth = line;
  const top = rowTop(flame, flame.depth[node] ?? 0, up) - scrollTop;
  context.strokeRect(left, top + 0.5, Math.max(2, right - left), ROW_HEIGHT - 2);
}

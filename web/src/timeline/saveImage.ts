// The timeline as it is seen, as a picture to keep: PNG from what is on the screen, SVG drawn once more.

import { CHROME, css } from "../base/color";
import { contextOf } from "../base/visibleText";
import { drawHeader, RULER_HEIGHT, STEPS_HEIGHT } from "./drawing/drawHeader";
import { drawTracks } from "./drawing/drawTracks";
import { newKept, type Tools } from "./drawing/scene";
import { escapeXml, SvgPen } from "./drawing/svgSurface";
import type { TimelineModel } from "./model/timelineModel";
import { sceneOf } from "./Pane";

/** A line of text on the page: where it stands, and how it looks. */
type Written = {
  readonly text: string;
  readonly x: number;
  readonly middle: number;
  readonly right: number;
  readonly font: string;
  readonly color: string;
};

/** The names beside the tracks, as they stand on the page: relative to the corner of `box`, cut where they are cut there. */
function writtenIn(box: HTMLElement): Written[] {
  const corner = box.getBoundingClientRect();
  const found: Written[] = [];
  for (const part of box.querySelectorAll<HTMLElement>(".gutter, .gutter-head")) {
    const scroller = (part.closest(".tracks-body") ?? part).getBoundingClientRect();
    const right = part.getBoundingClientRect().right;
    const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.textContent?.trim();
      const element = node.parentElement;
      if (!text || !element) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      const at = range.getBoundingClientRect();
      const middle = at.top + at.height / 2;
      const style = getComputedStyle(element);
      if (at.width === 0 || middle < scroller.top || middle > scroller.bottom || style.opacity === "0") continue;
      found.push({
        text,
        x: at.left - corner.left,
        middle: middle - corner.top,
        right: Math.min(right, element.getBoundingClientRect().right) - corner.left,
        font: style.font,
        color: style.color,
      });
    }
  }
  return found;
}

/** The canvases on the page, with their place from the corner of `box`. */
const canvasesIn = (box: HTMLElement) => {
  const corner = box.getBoundingClientRect();
  return [...box.querySelectorAll("canvas")].map((canvas) => {
    const at = canvas.getBoundingClientRect();
    return { canvas, x: at.left - corner.left, y: at.top - corner.top, width: at.width, height: at.height };
  });
};

/** What is on the screen as PNG, in the screen's own pixels. */
export async function asPng(model: TimelineModel, box: HTMLElement): Promise<Blob> {
  const scale = devicePixelRatio;
  const surface = new OffscreenCanvas(Math.round(box.clientWidth * scale), Math.round(box.clientHeight * scale));
  const context = contextOf(surface);
  if (!context) throw new Error("this browser has no canvas");
  context.fillStyle = css(CHROME[model.session.theme.peek()].background);
  context.fillRect(0, 0, surface.width, surface.height);
  for (const { canvas, x, y } of canvasesIn(box))
    context.drawImage(canvas, Math.round(x * scale), Math.round(y * scale));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.textBaseline = "middle";
  for (const { text, x, middle, right, font, color } of writtenIn(box)) {
    context.save();
    context.beginPath();
    context.rect(0, 0, right, box.clientHeight);
    context.clip();
    context.font = font;
    context.fillStyle = color;
    context.fillText(text, x, middle);
    context.restore();
  }
  return surface.convertToBlob({ type: "image/png" });
}

/** The address of a stretch of a canvas as a picture. */
function imageAddress(from: OffscreenCanvas, x: number, y: number, wide: number, tall: number): string {
  const canvas = document.createElement("canvas");
  canvas.width = wide;
  canvas.height = tall;
  contextOf(canvas)?.drawImage(from, x, y, wide, tall, 0, 0, wide, tall);
  return canvas.toDataURL("image/png");
}

/** The same as SVG: ruler, names, spans and what is chosen as vectors and text, cells as images. */
export function asSvg(model: TimelineModel, tools: Tools, box: HTMLElement): string {
  const measuring = contextOf(new OffscreenCanvas(1, 1));
  if (!measuring) throw new Error("this browser has no canvas");
  const { clientWidth: width, clientHeight: height } = box;
  const parts: string[] = [];
  const panes = [model.rows.pinned, model.rows.main];
  for (const { canvas, x, y, width: wide, height: tall } of canvasesIn(box)) {
    const id = `part${parts.length}`;
    const pen = new SvgPen(id, measuring, imageAddress);
    const pane = panes.find(
      (one) => (one === model.rows.main ? "tracks-canvas" : "pinned-canvas") === canvas.className,
    );
    if (pane)
      drawTracks(pen, { ...sceneOf(model, pane, undefined, newKept()), pixelRatio: 1, pointerX: undefined }, tools);
    else {
      const scene = { ...sceneOf(model, model.rows.main, undefined, newKept()), pixelRatio: 1, pointerX: undefined };
      drawHeader(pen, { ...scene, stepsNote: model.stepsNote.peek() }, tools.labels, tools.theme);
    }
    const clip = `<clipPath id="${id}-box"><rect width="${wide}" height="${pane ? tall : RULER_HEIGHT + STEPS_HEIGHT}"/></clipPath>`;
    parts.push(
      `<g transform="translate(${x} ${y})">${clip}<g clip-path="url(#${id}-box)">`,
      ...pen.elements,
      "</g></g>",
    );
  }
  for (const [i, { text, x, middle, right, font, color }] of writtenIn(box).entries())
    parts.push(
      `<clipPath id="name${i}"><rect width="${right}" height="${height}"/></clipPath>` +
        `<text x="${x}" y="${middle}" dominant-baseline="central" clip-path="url(#name${i})" fill="${color}" style="font:${escapeXml(font)}" xml:space="preserve">${escapeXml(text)}</text>`,
    );
  const background = css(CHROME[tools.theme].background);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">`,
    `<rect width="100%" height="100%" fill="${background}"/>`,
    ...parts,
    "</svg>",
  ].join("\n");
}

// A pen that writes SVG: rectangles, lines and names stay what they are, cells become small images.
import { visible } from "../../base/visibleText";

/** What the timeline draws with: a canvas, or what writes the same picture as SVG. It uses only what both have. */
export type Pen = CanvasRenderingContext2D | SvgPen;

/** Text as SVG has it. */
export const escapeXml = (text: string): string =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 has no place for them.
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "�");

const n = (value: number): string => `${Math.round(value * 100) / 100}`;

type Look = Pick<
  CanvasRenderingContext2D,
  "fillStyle" | "strokeStyle" | "lineWidth" | "font" | "textAlign" | "textBaseline"
>;

const BASELINES: Readonly<Record<string, string>> = { middle: "central", top: "hanging", bottom: "text-after-edge" };
const ANCHORS: Readonly<Record<string, string>> = { right: "end", end: "end", center: "middle" };

/** Draws into a list of elements. Scale is one: coordinates are CSS pixels. */
export class SvgPen {
  fillStyle: CanvasRenderingContext2D["fillStyle"] = "#000";
  strokeStyle: CanvasRenderingContext2D["strokeStyle"] = "#000";
  lineWidth = 1;
  lineJoin: CanvasRenderingContext2D["lineJoin"] = "miter";
  font = "10px sans-serif";
  textAlign: CanvasRenderingContext2D["textAlign"] = "start";
  textBaseline: CanvasRenderingContext2D["textBaseline"] = "alphabetic";
  imageSmoothingEnabled = true;
  readonly elements: string[] = [];
  private path = "";
  /** Looks at each save, and how many groups were opened since. */
  private readonly saved: { readonly look: Look; groups: number }[] = [];
  private clips = 0;

  /** `id` keeps the names of clips of several pens in one file apart; `image` turns a stretch of a canvas into an address. */
  constructor(
    private readonly id: string,
    private readonly measuring: Pick<CanvasRenderingContext2D, "font" | "measureText">,
    private readonly image: (from: OffscreenCanvas, x: number, y: number, wide: number, tall: number) => string,
  ) {}

  setTransform(): void {
    // Only ever the scale of the screen's pixels.
  }
  clearRect(): void {
    // Nothing was there.
  }
  fillRect(x: number, y: number, w: number, h: number): void {
    if (w <= 0 || h <= 0) return;
    this.add(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${this.fillStyle}"/>`);
  }
  strokeRect(x: number, y: number, w: number, h: number): void {
    this.add(
      `<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth)}"/>`,
    );
  }
  fillText(text: string, x: number, y: number): void {
    const baseline = BASELINES[this.textBaseline];
    const anchor = ANCHORS[this.textAlign];
    const placed = `x="${n(x)}" y="${n(y)}"${baseline ? ` dominant-baseline="${baseline}"` : ""}${anchor ? ` text-anchor="${anchor}"` : ""}`;
    this.add(
      `<text ${placed} fill="${this.fillStyle}" style="font:${escapeXml(this.font)}" xml:space="preserve">${escapeXml(visible(text))}</text>`,
    );
  }
  measureText(text: string): TextMetrics {
    this.measuring.font = this.font;
    return this.measuring.measureText(text);
  }
  drawImage(
    from: OffscreenCanvas,
    sx: number,
    sy: number,
    sw: number,
    sh: number,
    dx: number,
    dy: number,
    dw: number,
    dh: number,
  ): void {
    this.add(
      `<image x="${n(dx)}" y="${n(dy)}" width="${n(dw)}" height="${n(dh)}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${this.image(from, sx, sy, sw, sh)}"/>`,
    );
  }
  save(): void {
    const { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline } = this;
    this.saved.push({ look: { fillStyle, strokeStyle, lineWidth, font, textAlign, textBaseline }, groups: 0 });
  }
  restore(): void {
    const last = this.saved.pop();
    if (!last) return;
    for (let i = 0; i < last.groups; i++) this.add("</g>");
    Object.assign(this, last.look);
  }
  beginPath(): void {
    this.path = "";
  }
  closePath(): void {
    this.path += "Z";
  }
  moveTo(x: number, y: number): void {
    this.path += `M${n(x)} ${n(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.path += `${this.path ? "L" : "M"}${n(x)} ${n(y)}`;
  }
  bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    this.path += `C${[a, b, c, d, x, y].map(n).join(" ")}`;
  }
  rect(x: number, y: number, w: number, h: number): void {
    this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z`;
  }
  roundRect(x: number, y: number, w: number, h: number, radius: number): void {
    const r = Math.min(radius, w / 2, h / 2);
    const [across, down] = [w - 2 * r, h - 2 * r];
    const arc = (dx: number, dy: number): string => `a${n(r)} ${n(r)} 0 0 1 ${n(dx)} ${n(dy)}`;
    this.path += `M${n(x + r)} ${n(y)}h${n(across)}${arc(r, r)}v${n(down)}${arc(-r, r)}h${n(-across)}${arc(-r, -r)}v${n(-down)}${arc(r, -r)}Z`;
  }
  clip(): void {
    const id = `${this.id}-${++this.clips}`;
    this.add(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`);
    const last = this.saved.at(-1);
    if (last) last.groups++;
  }
  fill(): void {
    this.add(`<path d="${this.path}" fill="${this.fillStyle}"/>`);
  }
  stroke(): void {
    this.add(
      `<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${n(this.lineWidth)}" stroke-linejoin="${this.lineJoin}"/>`,
    );
  }

  private add(element: string): void {
    this.elements.push(element);
  }
}

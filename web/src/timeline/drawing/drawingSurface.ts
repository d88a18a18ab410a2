// What the drawing of the timeline may use of a canvas: so much can be saved as SVG, too (svgPen.ts).

type Plain =
  | "fillStyle"
  | "strokeStyle"
  | "lineWidth"
  | "lineJoin"
  | "font"
  | "textAlign"
  | "textBaseline"
  | "imageSmoothingEnabled"
  | "fillRect"
  | "clearRect"
  | "strokeRect"
  | "fillText"
  | "measureText"
  | "save"
  | "restore"
  | "beginPath"
  | "closePath"
  | "moveTo"
  | "lineTo"
  | "bezierCurveTo"
  | "rect";

export type Pen = Pick<CanvasRenderingContext2D, Plain> & {
  setTransform(a: number, b: number, c: number, d: number, e: number, f: number): void;
  roundRect(x: number, y: number, w: number, h: number, radius: number): void;
  clip(): void;
  fill(): void;
  stroke(): void;
  drawImage(
    image: OffscreenCanvas,
    sx: number,
    sy: number,
    sw: number,
    sh: number,
    dx: number,
    dy: number,
    dw: number,
    dh: number,
  ): void;
};

import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { contextOf } from "../base/visibleText";

export type Size = { readonly width: number; readonly height: number };

/** The inner size of an element in CSS pixels; 0 until it is measured. `key`: changes when the element is another one. */
export function useSize(element: { readonly current: Element | null }, key?: unknown): ReadonlySignal<Size> {
  const size = useSignal<Size>({ width: 0, height: 0 });
  useEffect(() => {
    const measured = element.current;
    if (!measured) return undefined;
    const observer = new ResizeObserver(() => {
      size.value = { width: measured.clientWidth, height: measured.clientHeight };
    });
    observer.observe(measured);
    return () => observer.disconnect();
  }, [element, size, key]);
  return size;
}

type Canvas = { readonly current: HTMLCanvasElement | null };

/** Draws onto a canvas of a size in CSS pixels, cleared before: after every render, or when one of `inputs` is another. */
export function useDrawing(
  canvas: Canvas,
  { width, height }: Size,
  draw: (context: CanvasRenderingContext2D) => void,
  inputs?: readonly unknown[],
): void {
  useEffect(() => {
    const context = contextOf(canvas.current);
    if (!canvas.current || !context || !width) return;
    fitCanvas(canvas.current, width, height);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    draw(context);
  }, inputs);
}

/** Gives a canvas the size of what it shows, in device pixels. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): void {
  const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
}

// Text for people: names in traces come from anybody. Control characters, marks that reorder text and marks without
// width are shown as escapes, wherever the page makes text: nodes and tooltips of the DOM, canvases, pictures to keep.
import { options, type VNode } from "preact";

/** Attributes that people see or hear. */
const SPOKEN = ["title", "aria-label", "aria-description", "aria-valuetext", "alt", "placeholder", "label"] as const;

/** What cannot be seen as escapes, but for line breaks and tabs, which are layout. */
export const visible = (text: string): string =>
  text.replace(
    /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`,
  );

/** From now on every text and every tooltip of the page is visible: the renderer calls this for each of its nodes. */
export function showVisibleText(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    makeVisible(node);
    before?.(node);
  };
}

/** A node of text has no type, and its text in the place of attributes. */
function makeVisible(node: VNode): void {
  const made: { type: unknown; props: unknown } = node;
  if (made.type === null && typeof made.props === "string") made.props = visible(made.props);
  else if (typeof node.type === "string") {
    const props: Record<string, unknown> = node.props;
    for (const name of SPOKEN) {
      const text = props[name];
      if (typeof text === "string") props[name] = visible(text);
    }
  }
}

type Contexts = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** What draws on a canvas, which writes and measures visible text. */
export function contextOf(canvas: OffscreenCanvas): OffscreenCanvasRenderingContext2D | undefined;
export function contextOf(canvas: HTMLCanvasElement | null | undefined): CanvasRenderingContext2D | undefined;
export function contextOf(canvas: HTMLCanvasElement | OffscreenCanvas | null | undefined): Contexts | undefined {
  const context: Contexts | null | undefined =
    canvas instanceof OffscreenCanvas ? canvas.getContext("2d") : canvas?.getContext("2d");
  if (!context) return undefined;
  if (Object.hasOwn(context, "fillText")) return context; // a canvas has one, however often it is asked for
  const [write, measure] = [context.fillText.bind(context), context.measureText.bind(context)];
  context.fillText = (text, ...where) => write(visible(text), ...where);
  context.measureText = (text) => measure(visible(text));
  return context;
}

// Every colour of data: hue is the group (Okabe–Ito: colour-blind people see the difference, too), lightness the name in a group.
// Chrome around the data (text, borders, surfaces) is in style/base.css.
import { GROUPS, type Group } from "./kinds.generated";
import type { StepPiece } from "./stepPieces";

export type Theme = "dark" | "light";

export const isGroup = (text: string): text is Group => (GROUPS as readonly string[]).includes(text);

export const GROUP_TITLES: Readonly<Record<Group, string>> = {
  data: "Data",
  compute: "Compute",
  communication: "Communication",
  sync: "Synchronisation",
  copy: "Copy",
  host: "Host code",
  other: "Other",
};

/** A colour in OKLCH: lightness 0..1, chroma, hue in degrees. */
type Oklch = { readonly l: number; readonly c: number; readonly h: number };
/** Red, green, blue, each 0..255. */
export type Rgb = readonly [number, number, number];

const GROUP_HUES: Readonly<Record<Group, Oklch>> = {
  data: { l: 0.78, c: 0.155, h: 72 },
  compute: { l: 0.62, c: 0.125, h: 250 },
  communication: { l: 0.68, c: 0.13, h: 345 },
  sync: { l: 0.63, c: 0.175, h: 38 },
  copy: { l: 0.86, c: 0.155, h: 103 },
  host: { l: 0.66, c: 0.11, h: 166 },
  other: { l: 0.62, c: 0.018, h: 260 },
};

/** Number of lightness steps inside a group. */
export const SHADES = 7;

export const PART_TITLES: Readonly<Record<StepPiece, string>> = {
  data_wait: "data",
  forward: "forward",
  backward: "backward",
  optimizer: "optimizer",
  validation: "validation",
  rest: "rest",
  communication: "communication",
  gpu_wait: "waiting for the GPU",
  gpu_call: "calls of the GPU’s interface",
  operators: "operators",
  host: "other host code",
};
const PART_COLORS: Readonly<Record<StepPiece, Oklch>> = {
  data_wait: GROUP_HUES.data,
  forward: { l: 0.72, c: 0.11, h: 240 },
  backward: { l: 0.54, c: 0.15, h: 262 },
  optimizer: { l: 0.68, c: 0.12, h: 170 },
  validation: { l: 0.64, c: 0.13, h: 305 },
  rest: { l: 0.6, c: 0.015, h: 260 },
  communication: GROUP_HUES.communication,
  gpu_wait: GROUP_HUES.sync,
  gpu_call: GROUP_HUES.copy,
  operators: GROUP_HUES.compute,
  host: GROUP_HUES.host,
};

// The most frequent class is calm, so that the others stand out.
const CLASS_COLORS: readonly Oklch[] = [
  { l: 0.64, c: 0.075, h: 250 },
  { l: 0.68, c: 0.14, h: 310 },
  { l: 0.72, c: 0.11, h: 190 },
  { l: 0.75, c: 0.13, h: 130 },
  { l: 0.7, c: 0.12, h: 10 },
  { l: 0.74, c: 0.1, h: 85 },
];
const OUTLIER: Oklch = { l: 0.64, c: 0.2, h: 30 };

// Waits for one rank, for all, and for a root have hues beside each other; what follows the wait for all is lighter.
const WAIT_COLORS: Readonly<Record<string, Oklch>> = {
  late_sender: { l: 0.65, c: 0.17, h: 38 },
  late_receiver: { l: 0.78, c: 0.15, h: 72 },
  wait_at_barrier: { l: 0.54, c: 0.15, h: 262 },
  barrier_completion: { l: 0.76, c: 0.08, h: 262 },
  wait_at_nxn: { l: 0.62, c: 0.125, h: 235 },
  nxn_completion: { l: 0.82, c: 0.07, h: 225 },
  late_broadcast: { l: 0.66, c: 0.11, h: 166 },
  early_reduce: { l: 0.75, c: 0.13, h: 130 },
  early_scan: { l: 0.86, c: 0.13, h: 110 },
  late_collective: { l: 0.64, c: 0.14, h: 320 },
  wait_at_fence: { l: 0.54, c: 0.13, h: 290 },
  late_post: { l: 0.7, c: 0.15, h: 18 },
  early_wait: { l: 0.7, c: 0.12, h: 350 },
  late_gpu: { l: 0.72, c: 0.09, h: 200 },
  late_stream: { l: 0.84, c: 0.06, h: 195 },
  late_host: { l: 0.58, c: 0.19, h: 28 },
  lock_contention: { l: 0.6, c: 0.12, h: 190 },
};

const toByte = (linear: number): number => {
  const x = Math.min(1, Math.max(0, linear));
  return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
};

/** OKLCH to sRGB, clipped to the gamut (Björn Ottosson, "A perceptual color space for image processing", 2020). */
export function toRgb({ l, c, h }: Oklch): Rgb {
  const a = c * Math.cos((h * Math.PI) / 180);
  const b = c * Math.sin((h * Math.PI) / 180);
  const x = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const y = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const z = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    toByte(4.0767416621 * x - 3.3077115913 * y + 0.2309699292 * z),
    toByte(-1.2684380046 * x + 2.6097574011 * y - 0.3413193965 * z),
    toByte(-0.0041960863 * x - 0.7034186147 * y + 1.707614701 * z),
  ];
}

/** Relative luminance of WCAG 2, 0..1. */
function luminance([r, g, b]: Rgb): number {
  const linear = (byte: number): number => {
    const x = byte / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** Contrast ratio of WCAG 2, 1..21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
export const pack = ([r, g, b]: Rgb): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // little endian RGBA

// So dark that on any colour either it or white reaches a contrast of 4.5.
const INK: Rgb = [4, 5, 7];
const PAPER: Rgb = [255, 255, 255];

/** Black or white: what is read better on a colour. */
export const textOn = (background: Rgb): string =>
  css(contrast(background, INK) >= contrast(background, PAPER) ? INK : PAPER);

/** A number 0..2^32 from a name, the same everywhere and always (FNV-1a). */
export function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  return (h ^ (h >>> 15)) >>> 0;
}

const themed = (color: Oklch, theme: Theme): Oklch =>
  theme === "dark" ? color : { l: color.l + 0.045, c: color.c * 1.02, h: color.h };

/** Colour of a region: hue from its group, lightness (and a breath of hue) from its name. */
export function regionColor(group: Group, name: string, theme: Theme): Rgb {
  const base = themed(GROUP_HUES[group], theme);
  const shade = (hash(name) % SHADES) / (SHADES - 1) - 0.5;
  return toRgb({ l: base.l + shade * 0.2, c: base.c * (1 - 0.15 * Math.abs(shade)), h: base.h + shade * 14 });
}

/** A number from −1 (much faster than usual) over 0 (as usual) to 1 (much slower): blue and orange around the background. */
export function relativeColor(value: number, theme: Theme): Rgb {
  const size = Math.min(1, Math.abs(value)) ** 1.1;
  const slow = value > 0;
  // Orange turns to yellow (dark) or to red (light) at its end, so that the worst differs from the bad.
  return theme === "dark"
    ? toRgb({
        l: 0.235 + size * (slow ? 0.6 : 0.48),
        c: 0.012 + size * (slow ? 0.16 : 0.13),
        h: slow ? 40 + 38 * size : 250,
      })
    : toRgb({
        l: 0.975 - size * (slow ? 0.42 : 0.42),
        c: 0.004 + size * (slow ? 0.195 : 0.15),
        h: slow ? 62 - 34 * size : 252,
      });
}

/** Where a step lacks a position of the usual path. */
export const absentColor = (theme: Theme): Rgb => (theme === "dark" ? [8, 9, 12] : [222, 226, 233]);

/** What a step does beyond the usual path. */
export const extraColor = (theme: Theme): Rgb => toRgb(themed({ l: 0.66, c: 0.19, h: 312 }, theme));

/** A share of time from 0 to 1 as heat: from the colour of the surface to a strong orange. */
export function heatColor(share: number, theme: Theme): Rgb {
  const size = Math.sqrt(Math.min(1, Math.max(0, share)));
  return theme === "dark"
    ? toRgb({ l: 0.27 + 0.33 * size, c: 0.015 + 0.125 * size, h: 48 })
    : toRgb({ l: 0.965 - 0.24 * size, c: 0.006 + 0.135 * size, h: 55 });
}

/** A value from 0 to 1 on the radar: lightness alone has the order, as in print; hue from violet over red to yellow helps. */
export function radarColor(value: number, theme: Theme): Rgb {
  const size = Math.min(1, Math.max(0, value));
  const chroma = 0.03 + 0.5 * size * (1 - size) + 0.1 * size;
  return theme === "dark"
    ? toRgb({ l: 0.24 + 0.66 * size, c: chroma, h: 290 + 170 * size })
    : toRgb({ l: 0.965 - 0.62 * size, c: chroma, h: 90 - 150 * size });
}

/** A colour on the way from one to another: 0 is the first, 1 the second. */
export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const at = (i: 0 | 1 | 2): number => Math.round(from[i] + (to[i] - from[i]) * share);
  return [at(0), at(1), at(2)];
}

/** A colour, or where another region is chosen a breath of it, so that the chosen one stands out. */
export const dimmed = (color: Rgb, dim: boolean, theme: Theme): Rgb =>
  dim ? mix(color, CHROME[theme].background, 0.78) : color;

export const groupColor = (group: Group, theme: Theme): Rgb => toRgb(themed(GROUP_HUES[group], theme));
export const partColor = (phase: StepPiece, theme: Theme): Rgb => toRgb(themed(PART_COLORS[phase], theme));
export const waitColor = (state: string, theme: Theme): Rgb =>
  toRgb(themed(WAIT_COLORS[state] ?? GROUP_HUES.other, theme));
export const outlierColor = (theme: Theme): Rgb => toRgb(themed(OUTLIER, theme));

/** What takes longer in the other run, what takes less, and what takes the same or is not looked at. */
export type ChangeKind = "longer" | "shorter" | "same";
const CHANGE_COLORS: Readonly<Record<ChangeKind, Oklch>> = {
  longer: OUTLIER,
  shorter: { l: 0.68, c: 0.12, h: 165 },
  same: GROUP_HUES.other,
};
export const changeColor = (kind: ChangeKind, theme: Theme): Rgb => toRgb(themed(CHANGE_COLORS[kind], theme));

/** Colour of the class of steps number `rank` by frequency, 0 being the most frequent. */
export function classColor(rank: number, theme: Theme): Rgb {
  const color = CLASS_COLORS[rank < CLASS_COLORS.length ? rank : 1 + ((rank - 1) % (CLASS_COLORS.length - 1))];
  return toRgb(themed(color ?? OUTLIER, theme));
}

/** Colour of number `rank` of `count` areas that lie on each other: all hues are different, neighbours in lightness, too. */
export const areaColor = (rank: number, count: number, theme: Theme): Rgb =>
  toRgb(themed({ l: rank % 2 ? 0.78 : 0.64, c: 0.12, h: 145 + (360 * rank) / count }, theme));

/** Colours of what is drawn on a canvas around the data. */
type Chrome = { readonly background: Rgb } & Readonly<
  Record<"grid" | "gridStrong" | "text" | "textWeak" | "accent" | "accentFill" | "band" | "note" | "noteFill", string>
>;

export const CHROME: Readonly<Record<Theme, Chrome>> = {
  dark: {
    background: [18, 21, 27],
    grid: "rgb(255 255 255 / 6%)",
    gridStrong: "rgb(255 255 255 / 13%)",
    text: "#d9dee7",
    textWeak: "#939cab",
    accent: "#6cb2ff",
    accentFill: "rgb(108 178 255 / 16%)",
    band: "rgb(255 255 255 / 3.5%)",
    note: "#e3b341",
    noteFill: "rgb(227 179 65 / 15%)",
  },
  light: {
    background: [255, 255, 255],
    grid: "rgb(20 30 50 / 7%)",
    gridStrong: "rgb(20 30 50 / 16%)",
    text: "#1f2733",
    textWeak: "#5b6675",
    accent: "#0b63c5",
    accentFill: "rgb(11 99 197 / 12%)",
    band: "rgb(20 30 50 / 3.5%)",
    note: "#8a5a00",
    noteFill: "rgb(191 135 0 / 16%)",
  },
};

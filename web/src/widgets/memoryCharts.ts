// What the charts of the page Memory show: series of memory by category, one chart for each memory.
import type { Series } from "../data/readings";

/** From the bottom of a stack: what stays comes first. The names of `strobe memory --by category`. */
export const MEMORY_CATEGORIES = [
  "parameters",
  "optimizer state",
  "gradients",
  "workspace",
  "inputs",
  "activations",
  "autograd details",
  "temporary",
  "unknown",
  "cache",
] as const;

export type MemoryChart = {
  readonly title: string;
  readonly parts: readonly { readonly category: (typeof MEMORY_CATEGORIES)[number]; readonly series: Series }[];
};

const NAME = /^(.+ memory): (.+)$/;

/** A chart for each memory of each process, those of GPUs as the series come. */
export function memoryCharts(series: readonly Series[]): MemoryChart[] {
  const found = new Map<string, Series[]>();
  const processes = new Set(series.map(({ process }) => process));
  for (const one of series) {
    const [, memory, category] = NAME.exec(one.metric) ?? [];
    if (!memory || !MEMORY_CATEGORIES.some((known) => known === category)) continue;
    const title = processes.size > 1 ? `${memory} of process ${one.process}` : memory;
    found.set(title, [...(found.get(title) ?? []), one]);
  }
  return [...found].map(([title, own]) => ({
    title,
    parts: MEMORY_CATEGORIES.flatMap((category) =>
      own.filter(({ metric }) => metric.endsWith(`: ${category}`)).map((one) => ({ category, series: one })),
    ),
  }));
}

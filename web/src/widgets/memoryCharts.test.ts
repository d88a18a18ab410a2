import { expect, test } from "vitest";
import type { Series } from "../data/readings";
import { memoryCharts } from "./memoryCharts";

const series = (metric: string, process = 0): Series => ({
  series: 0,
  metric,
  unit: "bytes",
  process,
  location: -1,
  lowest: 0,
  highest: 1,
});

test("each memory has a chart, with what stays at the bottom, and nothing but categories", () => {
  const charts = memoryCharts([
    series("GPU 1 memory: temporary"),
    series("GPU 0: allocated (PyTorch)"),
    series("GPU 0 memory: activations"),
    series("GPU 1 memory: parameters"),
    series("GPU 1 memory: power"),
    series("resident memory"),
  ]);
  expect(charts.map(({ title, parts }) => [title, parts.map(({ category }) => category)])).toEqual([
    ["GPU 1 memory", ["parameters", "temporary"]],
    ["GPU 0 memory", ["activations"]],
  ]);
});

test("processes have charts of their own", () => {
  const charts = memoryCharts([series("GPU 0 memory: inputs", 0), series("GPU 0 memory: inputs", 3)]);
  expect(charts.map(({ title }) => title)).toEqual(["GPU 0 memory of process 0", "GPU 0 memory of process 3"]);
});

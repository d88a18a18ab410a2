// The summary of a run, as present/summary.py makes it: what `strobe summary --json` prints.
import { type Group, isGroup, PHASES, type Phase } from "../base/color";
import type { Api } from "./api";
import { flag, list, maybe, number, object, text } from "./wire";

const group = (value: unknown, path: string): Group => {
  const name = text(value, path);
  return isGroup(name) ? name : "other";
};

const decodePart = object({ name: text, group, duration_ns: number, share: number });
export type Part = ReturnType<typeof decodePart>;

const decodeEvidence = object({ location: maybe(number), start_ns: number, duration_ns: number, text: maybe(text) });
export type Evidence = ReturnType<typeof decodeEvidence>;

const decodeFinding = object({
  rule: text,
  what: text,
  do: text,
  where: text,
  gain_low_ns: number,
  gain_high_ns: number,
  confidence: text,
  informative: flag,
  evidence: list(decodeEvidence),
});
export type Finding = ReturnType<typeof decodeFinding>;

const decodeStep = object({
  count: number,
  kept_count: number,
  steady_count: number,
  warm_up_count: number,
  outlier_count: number,
  class_name: text,
  class_count: number,
  median_ns: number,
  p95_ns: number,
  best_ns: number,
  confidence: text,
  reason: text,
  parts: list(decodePart),
});
export type StepSummary = ReturnType<typeof decodeStep>;

const decodeGpu = object({
  name: text,
  rank: maybe(number),
  duration_ns: number,
  computation: number,
  communication: number,
  copy: number,
  idle: number,
});
export type Gpu = ReturnType<typeof decodeGpu>;

const decodeHot = object({
  name: text,
  calls: number,
  self_ns: number,
  share: number,
  self_per_step_ns: maybe(number),
});
export type Hot = ReturnType<typeof decodeHot>;

const decodeQuality = object({
  complete: flag,
  losses: list(text),
  ended: text,
  estimated_cost: maybe(number),
  source: text,
  span_count: number,
  folded_count: number,
  size_bytes: number,
  bytes_per_span: number,
});
export type Quality = ReturnType<typeof decodeQuality>;

const decodeSummary = object({
  program: text,
  verdict: object({ kind: text, text, share: maybe(number) }),
  step: maybe(decodeStep),
  gpus: list(decodeGpu),
  findings: list(decodeFinding),
  hot_kind: text,
  hot: list(decodeHot),
  quality: decodeQuality,
  /** Of which part of the run this is, where that is too long to be read as a whole; else "". */
  part: text,
});
export type Summary = ReturnType<typeof decodeSummary>;

/** Fetches the summary, with the iterations of a loop level as the steps ("": those that were found). */
export const fetchSummary = (api: Api, level: string): Promise<Summary> =>
  api.json("summary", level ? { level } : {}, decodeSummary);

/** The phase that a part's name means, where it is one that has its own colour. */
export const phaseOf = (part: Part): Phase | undefined => PHASES.find((phase) => phase === part.name);

// Verdicts in words: what limits a run.
import { asSentence } from "./names";

export const VERDICTS: Readonly<Record<string, string>> = {
  "input-bound": "bound by data",
  "communication-bound": "bound by communication",
  "host-bound": "bound by the host",
  "compute-bound": "bound by compute",
  "transfer-bound": "bound by copies",
  imbalanced: "uneven work",
  "python-bound": "bound by Python",
  "gc-bound": "collects garbage",
  "gil-bound": "waits for the GIL",
  "lock-bound": "waits for a lock",
  "io-bound": "waits for files",
  sleeping: "sleeps",
  waiting: "waits",
  starved: "starved of cores",
  memory: "memory snapshot",
  "no-steps": "no steps",
  empty: "nothing recorded",
};

/** "input-bound: the loop waits …" without the kind, which the badge has already, beginning with a capital. */
export const verdictSentence = (text: string): string => asSentence(text.replace(/^[a-z]+-bound: /, ""));

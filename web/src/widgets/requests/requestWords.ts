// What requests do or wait for, in words, and the parts of their bars. Pure.

import { CHROME, groupColor, mix, type Rgb, type Theme } from "../../base/color";
import type { Group } from "../../base/kinds.generated";
import type { SlowOfRoute, SpentTime } from "../../data/wire/wire.generated";

type What = Pick<SpentTime, "kind" | "function" | "cause">;

const WAITS: Readonly<Record<string, readonly [words: string, group: Group]>> = {
  sleep: ["waits for a timer", "other"],
  lock: ["waits for a lock", "data"],
  semaphore: ["waits for a semaphore", "data"],
  condition: ["waits for a condition", "data"],
  event: ["waits for an event", "data"],
  queue: ["waits for a queue", "data"],
  "thread pool": ["waits for a free thread", "data"],
  "connection pool": ["waits for a free connection", "data"],
  "outgoing call": ["waits for another service", "communication"],
  socket: ["waits for a socket", "communication"],
  client: ["waits for the client", "copy"],
  task: ["waits for a task", "other"],
  process: ["waits for another process", "compute"],
  thread: ["runs in a thread", "compute"],
  running: ["its own code runs on the event loop", "host"],
  other: ["waits for a future", "other"],
};

/** What a part of a request is: "the event loop runs statements (service.py:43) of GET /statement". */
export function partWords({ kind, function: name, cause }: What): string {
  if (kind === "short") return "parts below 1 ms each";
  if (kind === "loop" || kind === "start") {
    const ran = [name, cause].filter(Boolean).join(" of ") || "others";
    return `the event loop runs ${ran}${kind === "start" ? " before its code begins" : ""}`;
  }
  if (kind === "running" && cause === "garbage collector")
    return `the garbage collector runs on the event loop${name ? ` in ${name}` : ""}`;
  const [words] = WAITS[kind] ?? [kind];
  const where = name ? (kind === "running" || kind === "thread" ? `: ${name}` : ` in ${name}`) : "";
  if (cause && (kind === "lock" || kind === "semaphore")) return `${words}${where}, until ${cause} releases it`;
  return `${words}${where}${cause && kind !== "running" ? `, behind ${cause}` : ""}`;
}

const groupOf = (kind: string): Group => (kind === "loop" || kind === "start" ? "sync" : (WAITS[kind]?.[1] ?? "other"));

export type SlowPart = {
  readonly name: string;
  readonly title: string;
  readonly ns: number;
  readonly share: number;
  /** Undefined: what is left. */
  readonly color: Rgb | undefined;
};

/** How much fainter the next part of the same colour is. */
const FAINTER = 0.32;

/** The parts of the time of slow requests, most first; what no part names comes last. */
export function slowParts(slow: SlowOfRoute, theme: Theme): readonly SlowPart[] {
  const seen = new Map<Group, number>();
  const parts = slow.parts.map((part, at): SlowPart => {
    const group = groupOf(part.kind);
    const before = seen.get(group) ?? 0;
    seen.set(group, before + 1);
    const color = mix(groupColor(group, theme), CHROME[theme].background, Math.min(0.7, FAINTER * before));
    return {
      name: `${at}`,
      title: partWords(part),
      ns: part.total_ns,
      share: part.share,
      color: part.kind === "short" ? undefined : color,
    };
  });
  const rest = { name: "rest", title: "everything else", ns: slow.rest_ns, color: undefined };
  return slow.rest_ns > 0 ? [...parts, { ...rest, share: slow.rest_ns / slow.total_ns }] : parts;
}

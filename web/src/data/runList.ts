// The runs of the server, which are answered beside the questions to one of them.
import { changeNotes, type Server } from "./wire/api";
import { flag, list, maybe, number, object, record, text } from "./wire/decoders";

const summary = object({
  kind: text,
  verdict: text,
  duration_ns: number,
  processes: number,
  gpus: number,
  state: list(text),
  complete: flag,
  step_ns: maybe(number),
  strip_ns: list(number),
});
const row = object({
  name: text,
  error: text,
  file: text,
  command: text,
  host: text,
  started_unix_ns: number,
  size_bytes: number,
  labels: list(text),
  summary: maybe(summary),
});
/** A run; without a summary nobody has summed it up since it was recorded. */
export type RunRow = ReturnType<typeof row>;
const rows = list(row);
const names = list(text);
const shares = record(number);
const uploaded = object({ name: text });

/** What lies behind the token, from the address of a run: that of the only one lies there itself, others below t/NAME/. */
export const rootOf = (address: string): URL =>
  new URL(/\/t\/[^/]+\/$/.test(new URL(address).pathname) ? "../../" : "./", address);

/** The name by which an address names a run; undefined for that of the only one. */
export const nameIn = (address: string): string | undefined => {
  const [, name] = /\/t\/([^/]+)\/$/.exec(new URL(address).pathname) ?? [];
  return name === undefined ? undefined : decodeURIComponent(name);
};

export const addressOf = (root: URL, name: string): URL => new URL(`t/${encodeURIComponent(name)}/`, root);

const ask = async (server: Server, address: URL, init?: RequestInit): Promise<unknown> =>
  (await server.fetch(address, init)).json();

export const fetchNames = async (server: Server, root: URL): Promise<readonly string[]> =>
  names(await ask(server, new URL("runs/names", root)), "names");

/** All runs, with what is known of them without opening one. */
export const fetchRuns = async (server: Server, root: URL): Promise<readonly RunRow[]> =>
  rows(await ask(server, new URL("runs/list", root)), "runs");

/** A run that is summed up for this. */
export const fetchSummed = async (server: Server, root: URL, name: string, signal: AbortSignal): Promise<RunRow> =>
  row(await ask(server, new URL(`runs/list/${encodeURIComponent(name)}`, root), { signal }), "run");

/** How much of what somebody asked of the run at an address is done: by question, from 0 to 1. */
export const fetchProgress = async (server: Server, run: URL): Promise<ReadonlyMap<string, number>> => {
  return new Map(Object.entries(shares(await ask(server, new URL("api/progress", run)), "progress")));
};

/** Sends a file to be opened; gives the name of its run. */
export const upload = async (server: Server, root: URL, file: File): Promise<string> => {
  const address = new URL(`runs/upload?name=${encodeURIComponent(file.name)}`, root);
  return uploaded(await ask(server, address, { method: "POST", body: file }), "upload").name;
};

/** Gives a run these labels instead of those it has; gives those that it has then. */
export const labelRun = async (server: Server, root: URL, name: string, labels: readonly string[]) =>
  (await changeNotes(server, addressOf(root, name), { labels })).labels;

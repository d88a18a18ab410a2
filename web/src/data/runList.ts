// The runs of the server, which are answered beside the questions to one of them.
import { ApiError, sentenceOf } from "./wire/api";
import { flag, list, maybe, number, object, text } from "./wire/decoders";

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
  summary: maybe(summary),
});
/** A run; without a summary nobody has summed it up since it was recorded. */
export type RunRow = ReturnType<typeof row>;
const rows = list(row);
const names = list(text);
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

async function ask(address: URL, init?: RequestInit): Promise<unknown> {
  const response = await fetch(address, init).catch(() => {
    throw new ApiError("the server does not answer: is `strobe view` still running?");
  });
  if (!response.ok) throw new ApiError(await sentenceOf(response));
  return response.json();
}

export const fetchNames = async (root: URL): Promise<readonly string[]> =>
  names(await ask(new URL("runs/names", root)), "names");

/** All runs, with what is known of them without opening one. */
export const fetchRuns = async (root: URL): Promise<readonly RunRow[]> =>
  rows(await ask(new URL("runs/list", root)), "runs");

/** A run that is summed up for this. */
export const fetchSummed = async (root: URL, name: string): Promise<RunRow> =>
  row(await ask(new URL(`runs/list/${encodeURIComponent(name)}`, root)), "run");

/** Sends a file to be opened; gives the name of its run. */
export const upload = async (root: URL, file: File): Promise<string> => {
  const address = new URL(`runs/upload?name=${encodeURIComponent(file.name)}`, root);
  return uploaded(await ask(address, { method: "POST", body: file }), "upload").name;
};

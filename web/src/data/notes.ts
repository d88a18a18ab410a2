// What people noted on the run: as it was fetched last, and changes that are sent.
import { type Signal, signal } from "@preact/signals";
import { formatDuration, type TimeRange } from "../base/time";
import type { Api, NoteFields } from "./wire/api";
import type { Note } from "./wire/wire.generated";

export class Notes {
  /** In order of time. */
  readonly list: Signal<readonly Note[]> = signal([]);

  constructor(private readonly api: Api) {}

  async fetch(): Promise<void> {
    this.list.value = (await this.api.json("notes", {})).notes;
  }

  /** Adds a note, or replaces the one with its key. */
  async write(note: NoteFields): Promise<void> {
    this.list.value = (await this.api.note({ note })).notes;
  }

  async remove(key: string): Promise<void> {
    this.list.value = (await this.api.note({ remove: key })).notes;
  }
}

/** The key of a new note: with it, what is sent twice is one note. */
export const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

export const rangeOf = ({ start_ns: startNs, end_ns: endNs }: Pick<Note, "start_ns" | "end_ns">): TimeRange => ({
  startNs,
  endNs,
});

/** What a note is on, in words: "moment", "range of 1.20 ms", "span step". */
export const subjectOf = ({ start_ns, end_ns, depth, span }: NoteFields): string => {
  if (depth !== undefined) return `span ${span}`;
  return end_ns > start_ns ? `range of ${formatDuration(end_ns - start_ns)}` : "moment";
};

// What a job hangs in: operations that were not complete on all ranks when flight recorders were dumped.

import { grouped } from "../base/grouped";
import type { Api } from "./wire/api";
import type { RowOf } from "./wire/arrowTable";

/** Columns of the analysis `unfinished`: a rank of the group of an operation. */
const RANK = {
  group: "text",
  description: "text",
  sequence: "number",
  rank: "number",
  /** scheduled, started, completed, not called, no dump, overwritten. */
  state: "text",
  /** missing, operation, size, dtype; "" where it is as on most ranks. */
  difference: "text",
  operation: "text",
  called_at: "text",
  last_call: "text",
  called_ns: "number?",
  location: "number?",
} as const;
export type RankOfOperation = RowOf<typeof RANK>;

export type UnfinishedOperation = {
  readonly key: string;
  /** "all_reduce 5 of group 0 (default_pg)". */
  readonly title: string;
  readonly ranks: readonly RankOfOperation[];
};

export type Unfinished = { readonly operations: readonly UnfinishedOperation[]; readonly note: string };

/** Fetches the operations, the one to look at first before the others, and the sentence about it. */
export async function fetchUnfinished(api: Api): Promise<Unfinished> {
  const table = await api.analysis("unfinished", {});
  const byOperation = grouped(table.rowsAs(RANK), ({ group, sequence }) => `${group} ${sequence}`);
  const operations = [...byOperation].map(([key, ranks]) => {
    const [first] = ranks;
    const usual = ranks.find(({ operation, difference }) => operation && !difference) ?? first;
    const group = `group ${first?.group}${first?.description && ` (${first.description})`}`;
    return { key, title: `${usual?.operation} ${first?.sequence} of ${group}`, ranks };
  });
  return { operations, note: table.metadata("note") ?? "" };
}

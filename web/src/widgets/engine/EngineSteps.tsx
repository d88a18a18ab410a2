// The steps of a serving engine: what each class computes, and how long it takes.
import { formatCount } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import type { EngineRow, LatencyRow } from "../../data/wire/wire.generated";
import { Button } from "../controls";

const COLUMNS: readonly (readonly [title: string, meaning: string, cell: (row: EngineRow) => string])[] = [
  ["steps", "complete steps that are not part of the warm-up", (row) => formatCount(row.steps)],
  ["requests", "in the batch, mean", (row) => shown(row.requests)],
  ["tokens", "computed in a step, mean", (row) => shown(row.tokens)],
  ["of prompts", "of the tokens those of prompts, mean", (row) => shown(row.prefill_tokens)],
  ["on the host", "from the begin of a step to the next, mean", (row) => formatDuration(row.duration_ns)],
  ["on the GPU", "while anything runs that a step launched, mean", (row) => lasting(row.gpu_ns)],
  ["per token", "time on the GPU for each token", (row) => lasting(row.gpu_ns_per_token)],
  ["tokens/s", "tokens over the time to the next step", (row) => shown(row.tokens_per_second)],
];

const UNKNOWN = "–";
const shown = (value: number | undefined): string =>
  value === undefined ? UNKNOWN : value < 10 && value % 1 > 0 ? value.toFixed(1) : formatCount(value);
const lasting = (ns: number | undefined): string => (ns === undefined ? UNKNOWN : formatDuration(ns));

const times = (median: number | undefined, p95: number | undefined): string =>
  `${lasting(median)} (median; p95 ${lasting(p95)})`;

type Props = {
  readonly rows: readonly EngineRow[];
  /** Of requests, where loops that generate tokens were found by structure. */
  readonly latency?: readonly LatencyRow[];
  /** Where more is to be seen. */
  readonly more: { readonly words: string; readonly onClick: () => void };
};

export function EngineSteps({ rows, latency = [], more }: Props) {
  const ranks = new Set(rows.map(({ rank }) => rank)).size > 1;
  return (
    <section class="card surface" aria-labelledby="engine-title">
      <header>
        <h2 id="engine-title">{latency.length ? "Iterations that generate tokens" : "Steps of the engine"}</h2>
        <span class="spacer" />
        <Button class="link" onClick={more.onClick}>
          {more.words}
        </Button>
      </header>
      <div class="scrolls">
        <table class="hot">
          <thead>
            <tr>
              <th scope="col">class</th>
              {COLUMNS.map(([title, meaning]) => (
                <th key={title} scope="col" title={meaning}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.rank} ${row.step_class}`}>
                <td>{ranks ? `rank ${row.rank} ${row.step_class}` : row.step_class}</td>
                {COLUMNS.map(([title, , cell]) => (
                  <td key={title} class="number">
                    {cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {latency.map((row) => (
        <p key={row.rank} class="weak">
          {latency.length > 1 && `Rank ${row.rank}: `}time to first token{" "}
          {times(row.median_time_to_first_token_ns, row.p95_time_to_first_token_ns)}, time per output token{" "}
          {times(row.median_time_per_output_token_ns, row.p95_time_per_output_token_ns)}; {formatCount(row.requests)}{" "}
          requests
        </p>
      ))}
    </section>
  );
}

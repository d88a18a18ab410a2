// Steps of all ranks side by side, by what their time went into: each tile leads to the step on its rank's timeline.
import { formatDuration } from "../../base/time";
import type { RankSteps } from "../../data/rankWaits";
import { Scale } from "../figures";
import { TilePicture } from "./TilePicture";

type Props = { readonly of: RankSteps; readonly onOpen: (column: number, row: number) => void };

const named = (what: string, first = 0, last = 0): string =>
  first === last ? `${what} ${first}` : `${what}s ${first} to ${last}`;

export function StepTiles({ of, onOpen }: Props) {
  const {
    first_rank: firstRank,
    last_rank: lastRank,
    first_step: firstStep,
    last_step: lastStep,
    valuesNs,
    steps,
  } = of;
  if (!steps) return <p class="weak">No rank has a step in this part of the run.</p>;
  const columns = firstStep.length;
  return (
    <TilePicture
      class="steps-of-ranks pairs"
      label={`${steps} steps of ranks`}
      {...{ columns, rows: firstRank.length, values: valuesNs, onOpen }}
      left={<Scale of={[firstRank[0], "rank", lastRank.at(-1)]} />}
      below={[firstStep[0], "step", lastStep.at(-1)]}
      none="0"
      tooltipOf={(column, row) => {
        const ns = valuesNs[row * columns + column] ?? Number.NaN;
        const [rank, step] = [
          named("rank", firstRank[row], lastRank[row]),
          named("step", firstStep[column], lastStep[column]),
        ];
        return (
          <b>
            {rank}, {step}: {Number.isNaN(ns) ? "not known" : formatDuration(ns)}
          </b>
        );
      }}
    />
  );
}

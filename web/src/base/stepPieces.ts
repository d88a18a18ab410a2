// What a step is drawn as: its parts, and where it has no passes of a training, the kinds of work that its rest consists of.
import { HOST_KINDS, type HostKind, PARTS, type StepPart } from "./kinds.generated";

export type StepPiece = StepPart | HostKind;
/** In the order in which they are drawn: what is not known last. */
export const PIECES: readonly StepPiece[] = [...new Set<StepPiece>([...PARTS, ...HOST_KINDS])].sort(
  (a, b) => Number(a === "rest") - Number(b === "rest"),
);

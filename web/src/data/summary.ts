// The summary of a run, as present/summary.py makes it: what `strobe summary --json` prints.
import { PARTS, type StepPart } from "../base/kinds.generated";
import { ofLevel } from "./runSteps";
import type { Api } from "./wire/api";
import type { Part, Summary } from "./wire/wire.generated";

/** Fetches the summary, with the iterations of a loop level as the steps ("": those that were found). */
export const fetchSummary = (api: Api, level: string): Promise<Summary> => api.json("summary", ofLevel(level));

/** The part of a step that has its own colour, where this is one. */
export const stepPartOf = (part: Part): StepPart | undefined => PARTS.find((one) => one === part.name);

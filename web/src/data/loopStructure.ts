// Loops and the folded flow graph of a run, as `strobe structure --json` prints them.
import type { Api } from "./wire/api";
import type { OpenedFlow, Structure } from "./wire/wire.generated";

/** Fetches the flow graph of the operators in detail. */
export const fetchFlow = (api: Api, opened: readonly string[]): Promise<OpenedFlow> =>
  api.json("flow", opened.length ? { open: opened.join("~") } : {});

/** Fetches loops and flow graph. */
export const fetchStructure = (api: Api): Promise<Structure> => api.json("structure", {});

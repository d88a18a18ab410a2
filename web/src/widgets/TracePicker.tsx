// The way to the other traces that the same server shows; nothing where there is only one.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useSession } from "../data/session";
import type { Traces } from "../data/wire/wire.generated";

export function TracePicker() {
  const { api } = useSession();
  const traces = useSignal<Traces | undefined>(undefined);
  useEffect(() => {
    // Without an answer nothing can be chosen; the run itself shows the error.
    api.json("traces", {}).then(
      (found) => {
        traces.value = found;
      },
      () => {},
    );
  }, [api, traces]);
  const { here, names } = traces.value ?? { here: "", names: [] };
  if (names.length < 2) return null;
  return (
    <span class="traces row">
      <select
        aria-label="Run"
        value={here}
        onChange={(event) => location.assign(`../${encodeURIComponent(event.currentTarget.value)}/`)}
      >
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <a href="../../">all runs</a>
    </span>
  );
}

// The way to the other traces that the same server shows; nothing where there is only one.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { useSession } from "../data/session";
import { list, object, text } from "../data/wire";

const decodeTraces = object({ here: text, names: list(text) });

export function Traces() {
  const { api } = useSession();
  const traces = useSignal<ReturnType<typeof decodeTraces> | undefined>(undefined);
  useEffect(() => {
    // Without an answer there is no way to others: whatever is wrong, the run itself says so.
    api.json("traces", {}, decodeTraces).then(
      (found) => {
        traces.value = found;
      },
      () => {},
    );
  }, [api, traces]);
  const { here, names } = traces.value ?? { here: "", names: [] };
  if (names.length < 2) return null;
  return (
    <span class="traces">
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

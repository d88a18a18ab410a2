// The legend of keys: what the page can do, on one card, and what marks are; and the few most wanted of them in a line below the tracks.
import { useEffect, useRef } from "preact/hooks";
import { useSession } from "../data/session";
import { EVERYWHERE, HINTS, type KeyLine, PAGE_GROUPS, TIMELINE_GROUPS } from "../state/keyTable";
import type { Page } from "../state/view";
import { Close } from "./controls";
import { MARKS } from "./GroupLegend";

type Props = {
  readonly open: boolean;
  readonly pages: readonly Page[];
  readonly onClose: () => void;
};

export function Legend({ open, pages, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  const everywhere = [...pages.map(({ key, title }) => ({ show: key, what: title })), ...EVERYWHERE];
  return (
    <dialog ref={dialog} class="legend-card" aria-labelledby="legend-title" onClose={onClose}>
      <header class="flex">
        <h2 id="legend-title">Keys</h2>
        <Close label="Close" onClick={onClose} />
      </header>
      <div class="legend-columns rows">
        <div>
          <h3 class="legend-page">Timeline</h3>
          {TIMELINE_GROUPS.map((group) => (
            <Keys key={group.title} title={group.title} keys={group.keys} />
          ))}
        </div>
        <div>
          <Keys title="Everywhere" keys={everywhere} />
          <section>
            <h3>▼ rare and long</h3>
            <p>{MARKS} Thin rows show them as stripes.</p>
          </section>
          {PAGE_GROUPS.map((group) => (
            <Keys key={group.title} title={group.title} keys={group.keys} />
          ))}
        </div>
      </div>
    </dialog>
  );
}

function Keys({ title, keys }: { title: string; keys: readonly KeyLine[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl class="rows gap-5">
        {keys.map(({ show, what }) => (
          <div class="legend-line" key={show}>
            <dt>
              <Caps show={show} />
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const Caps = ({ show }: { show: string }) => (
  <>
    {show.split("  ").map((one) => (
      <kbd key={one}>{one}</kbd>
    ))}
  </>
);

/** The line below the tracks: nobody should have to search for how to zoom out. */
export function KeyHints() {
  const session = useSession();
  if (!session.hints.value) return null;
  return (
    <span class="key-hints">
      {HINTS.map(({ show, what }) => (
        <span class="key-hints-one" key={show}>
          <Caps show={show} /> {what}
        </span>
      ))}
      <Close label="Hide this line of keys" title="Hide this line of keys (H)" onClick={() => session.toggleHints()} />
    </span>
  );
}

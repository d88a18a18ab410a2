// The legend of keys: what the page can do, on one card.
import { useEffect, useRef } from "preact/hooks";
import type { View } from "../data/view";

type Props = {
  readonly open: boolean;
  readonly views: readonly View[];
  /** Of each page that has its own: title, and keys with what they do. */
  readonly keys: readonly { readonly title: string; readonly keys: readonly (readonly [string, string])[] }[];
  readonly onClose: () => void;
};

export function Legend({ open, views, keys, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  const everywhere: readonly (readonly [string, string])[] = [
    ...views.map((view) => [view.key, view.title] as const),
    ["/", "search the whole run"],
    ["T", "theme: dark, light, as the system"],
    ["?", "this card"],
  ];
  return (
    <dialog ref={dialog} class="legend-card" aria-labelledby="legend-title" onClose={onClose}>
      <header>
        <h2 id="legend-title">Keys</h2>
        <button type="button" class="quiet" onClick={onClose} aria-label="Close">
          ✕
        </button>
      </header>
      <div class="legend-columns">
        {keys.slice(0, 1).map((one) => (
          <Keys key={one.title} title={one.title} keys={one.keys} />
        ))}
        <div>
          {[...keys.slice(1), { title: "Everywhere", keys: everywhere }].map((one) => (
            <Keys key={one.title} title={one.title} keys={one.keys} />
          ))}
        </div>
      </div>
    </dialog>
  );
}

function Keys({ title, keys }: { title: string; keys: readonly (readonly [string, string])[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl>
        {keys.map(([key, what]) => (
          <div class="legend-line" key={key}>
            <dt>
              {key.split("  ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

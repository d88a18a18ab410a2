// The links of the selected span, as a list to follow.

import { middleCut } from "../../base/names";
import { formatCount, plural } from "../../base/quantity";
import { formatDuration } from "../../base/time";
import { useSession } from "../../data/session";
import type { Link, Links } from "../../data/wire/wire.generated";
import { Button } from "../controls";
import { Swatch } from "../figures";

/** The words for a link, by its kind and its way. */
const WORDS: Readonly<Record<string, string>> = {
  "launch to": "launched",
  "launch from": "launched by",
  "backward to": "backward",
  "backward from": "forward",
  "message to": "received by",
  "message from": "sent by",
  "collective with": "met",
};
const NAME_LENGTH = 44;

const words = ({ kind, way }: Link): string => WORDS[`${kind} ${way}`] ?? `${kind} ${way}`;

type Props = {
  readonly links: Links;
  /** When the span begins, ns. */
  readonly startNs: number;
  readonly onJump: (link: Link) => void;
};

export function SpanLinks({ links, startNs, onJump }: Props) {
  const session = useSession();
  const run = session.run.value;
  const place = (location: number): string =>
    run.status === "ready" ? (run.value.locations[location]?.name ?? "") : "";
  if (!links.links.length && !links.left_out.length) return null;
  const more = links.count - links.links.length;
  return (
    <section class="span-links" aria-labelledby="links-title">
      <h3 id="links-title">
        Links <span class="weak">{formatCount(links.count)}</span>
      </h3>
      <ul class="rows gap-2 fine">
        {links.links.map((link, i) => (
          <li key={`${link.location}_${link.start_ns}_${link.depth}`}>
            <Button
              class="plain cells gap-6"
              title={`${link.name}\n${place(link.location)}, ${formatDuration(link.start_ns - startNs)} after the begin`}
              onClick={() => onJump(link)}
            >
              <span class="weak">{words(link)}</span>
              <Swatch group={link.group} />
              <span class="ellipsis">{middleCut(link.name, NAME_LENGTH)}</span>
              <span class="number">{formatDuration(link.duration_ns)}</span>
              {i === 0 && <kbd>J</kbd>}
            </Button>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="weak">and {plural(more, "more link")}</p>}
      {links.left_out.length > 0 && (
        <p class="weak">Not looked for in so large a run: {links.left_out.map((kind) => `${kind}s`).join(", ")}.</p>
      )}
      {!links.inside && <p class="weak">Links of what is inside were not looked for: that is too much.</p>}
    </section>
  );
}

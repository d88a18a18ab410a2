// Small pictures of numbers that several pages show: bars of parts, lists of what takes the time, histograms.
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { css, groupColor, type Rgb, textOn } from "../base/color";
import type { Group } from "../base/kinds.generated";
import { formatShare } from "../base/quantity";
import { formatDuration } from "../base/time";
import { useSession } from "../data/session";
import { Button } from "./controls";

/** A square in the colour of a group. */
export function Swatch({ group }: { group: Group }) {
  return <i style={{ background: css(groupColor(group, useSession().theme.value)) }} />;
}

/** Two numbers that matter most, each above what it is. */
export const BigNumbers = ({ of }: { of: readonly (readonly [value: string, what: ComponentChildren])[] }) => (
  <div class="big-numbers rows">
    {of.map(([value, what], i) => (
      <div key={i}>
        <b>{value}</b>
        <span class="weak">{what}</span>
      </div>
    ))}
  </div>
);

type Fact = readonly [name: string, value: ComponentChildren, title?: string];

/** Facts line by line; what is not known (undefined) or does not hold (false) has no line. */
export const Facts = ({ of, class: more = "" }: { of: readonly Fact[]; class?: string }) => (
  <dl class={`facts rows ${more}`}>
    {of.map(([name, value, title]) =>
      value === undefined || value === false ? null : (
        <div key={`${name} ${title}`} title={title}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ),
    )}
  </dl>
);

/** A dashed line at a place of a picture, in the picture's units. */
export const Here = ({ at, tall }: { at: number; tall: number }) => (
  <line class="here" x1={at} x2={at} y1="0" y2={tall} vector-effect="non-scaling-stroke" />
);

/** A part of a bar, as wide as it grows. */
export type BarPart = {
  readonly name: string;
  readonly grow: number;
  /** Undefined: idle. */
  readonly color: Rgb | undefined;
  readonly title: string;
  /** What is written on it. */
  readonly text: string | false;
};

/** Parts of a whole beside each other. */
export const PartBar = ({ label, parts }: { label: string; parts: readonly BarPart[] }) => (
  <div class="step-bar" role="img" aria-label={label}>
    {parts.map(({ name, grow, color, title, text }) => (
      <div
        key={name}
        class={color ? undefined : "idle"}
        style={{ flexGrow: grow, ...(color && { background: css(color), color: textOn(color) }) }}
        title={title}
      >
        {text}
      </div>
    ))}
  </div>
);

/** A part of a bar by its time and share; parts narrower than `narrowest` carry no number. */
export const timedPart = (
  { name, title, ns, share, color }: { name: string; title: string; ns: number; share: number; color: Rgb | undefined },
  narrowest: number,
): BarPart => ({
  name,
  grow: share,
  color,
  title: `${title}: ${formatDuration(ns)}, ${formatShare(share)}`,
  text: share >= narrowest && formatShare(share),
});

type ListedPart = {
  readonly name: string;
  readonly title: string;
  readonly color: Rgb | undefined;
  readonly ns?: number;
};

/** What the colours of a bar mean, and how long each part takes. */
export const PartList = ({ parts }: { parts: readonly ListedPart[] }) => (
  <ul class="step-parts wraps">
    {parts.map(({ name, title, color, ns }) => (
      <li key={name} class="row">
        {color ? <i style={{ background: css(color) }} /> : <i class="idle" />}
        <span>{title}</span>
        {ns !== undefined && <b>{formatDuration(ns)}</b>}
      </li>
    ))}
  </ul>
);

/** Parts narrower than this carry no number. */
const NARROWEST_PART = 0.1;

type PartedProps = {
  readonly name: string;
  /** What the bar is of, in words, for those who do not see where it stands. */
  readonly label: string;
  readonly about: string;
  readonly parts: readonly (ListedPart & { readonly ns: number; readonly share: number })[];
};

/** A time and its parts, each with its name and length: one of several bars below each other. */
export const PartedTime = ({ name, label, about, parts }: PartedProps) => (
  <section class="parted-time" aria-label={label}>
    <p>
      <b>{name}</b> <span class="weak">{about}</span>
    </p>
    <PartBar
      label={parts.map(({ title, share }) => `${title} ${formatShare(share)}`).join("; ")}
      parts={parts.map((part) => timedPart(part, NARROWEST_PART))}
    />
    <PartList parts={parts} />
  </section>
);

type UsageProps = {
  /** Undefined: the square is hatched. */
  readonly group: Group | undefined;
  readonly name: ComponentChildren;
  readonly amount: string;
  readonly share?: number;
  readonly title?: string | undefined;
  readonly chosen?: boolean;
  /** Where the name is a button. */
  readonly button?: ButtonHTMLAttributes | undefined;
};

/** A line of a list of what takes the time. */
export const UsageRow = ({ group, name, amount, share, button, title, chosen = false }: UsageProps) => (
  <li class={chosen ? "cells chosen-path" : "cells"} title={title}>
    {group ? <Swatch group={group} /> : <i class="hatched" />}
    {button ? (
      <Button class="plain" {...button}>
        {name}
      </Button>
    ) : (
      <span>{name}</span>
    )}
    <span class="number">{amount}</span>
    {share !== undefined && <span class="number weak">{formatShare(share)}</span>}
  </li>
);

/** The ends and the middle of the axis below a histogram. */
export const Scale = ({ of: marks }: { of: readonly ComponentChildren[] }) => (
  <div class="scale weak">
    {marks.map((mark, i) => (
      <span key={i}>{mark}</span>
    ))}
  </div>
);

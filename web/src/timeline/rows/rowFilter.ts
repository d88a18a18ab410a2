// Which rows a filter leaves: `rank:3-7,12 host:n01 -stream` in the manner of the search. All parts must hold.

/** What is known of a thread or stream, in lower case where it is text. */
export type Described = {
  readonly rank: number | undefined;
  readonly host: string;
  readonly process: string;
  readonly name: string;
  readonly kind: string;
};

type Part = { readonly without: boolean; readonly holds: (one: Described) => boolean };

/** "3-7,12" as pairs of bounds; undefined where it is not of this form. */
function ranges(text: string): (readonly [number, number])[] | undefined {
  const found = text.split(",").map((part) => /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part));
  if (found.some((each) => each === null)) return undefined;
  return found.map((each) => [Number(each?.[1]), Number(each?.[2] ?? each?.[1])] as const);
}

function holdsFor(part: string): Part["holds"] {
  const colon = part.indexOf(":");
  const [field, value] = colon < 0 ? ["", part] : [part.slice(0, colon), part.slice(colon + 1)];
  const wanted = field === "rank" ? ranges(value) : undefined;
  if (wanted) return ({ rank }) => rank !== undefined && wanted.some(([low, high]) => rank >= low && rank <= high);
  if (field === "host") return ({ host }) => host.includes(value);
  if (field === "process") return ({ process }) => process.includes(value);
  if (field === "kind") return ({ kind }) => kind === value;
  if (field === "thread" || field === "stream") return ({ kind, name }) => kind === field && name.includes(value);
  return (one) => [one.name, one.kind, one.process, one.host].some((text) => text.includes(part));
}

/** Reads a filter; undefined where it is empty. */
export function parseFilter(text: string): ((one: Described) => boolean) | undefined {
  const parts: Part[] = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "" && word !== "-")
    .map((word) => {
      const without = word.startsWith("-");
      return { without, holds: holdsFor(without ? word.slice(1) : word) };
    });
  if (!parts.length) return undefined;
  return (one) => parts.every(({ without, holds }) => holds(one) !== without);
}

// A name with its middle cut where there is no room for all of it: names differ least in there.

/** Characters at the end of a name that are always seen. */
const TAIL = 14;

export function CutName({ text }: { text: string }) {
  if (text.length <= TAIL * 2) return <>{text}</>;
  return (
    <span class="cut-name">
      <span class="ellipsis">{text.slice(0, -TAIL)}</span>
      <span>{text.slice(-TAIL)}</span>
    </span>
  );
}

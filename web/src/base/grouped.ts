// What belongs together.

/** Items by a key, both in the order in which they come (Map.groupBy, which Node 20 lacks). */
export function grouped<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const found = new Map<Key, Item[]>();
  for (const item of items) if (!found.get(keyOf(item))?.push(item)) found.set(keyOf(item), [item]);
  return found;
}

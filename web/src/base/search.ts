// Search in what is in order.

/** The first of the numbers [0, count) that a test holds for, which holds for all behind it, too; `count` where there is none. */
export function firstThat(count: number, holds: (at: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

"""Two processes look for the best baskets at the prices of a catalogue."""
import argparse, functools, json, multiprocessing, random, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=120)
parser.add_argument("--articles", type=int, default=12000)
parser.add_argument("--tries", type=int, default=500)
args = parser.parse_args()
DEFECT = args.defect == "on"

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def make_catalogue():
    rng = random.Random(7)
    return {f"article-{number}": (rng.random() * 90, rng.randrange(1, 30)) for number in range(args.articles)}


def best_basket(seed, catalogue):
    rng, best = random.Random(seed), 0.0
    for _ in range(args.tries):
        price = weight = 0
        for number in rng.choices(range(args.articles), k=8):
            cost, grams = catalogue[f"article-{number}"]
            price, weight = price + cost, weight + grams
        best = max(best, price / weight)
    return best


def remember(catalogue):
    global kept
    kept = catalogue


def best_of_kept(seed):
    return best_basket(seed, kept)


class Search:
    def __init__(self):
        self.catalogue = make_catalogue()
        self.pool = multiprocessing.get_context("fork").Pool(2, remember, (self.catalogue,))

    def round(self, number):
        seeds = range(4 * number, 4 * number + 4)
        if DEFECT:
            return self.pool.map(functools.partial(best_basket, catalogue=self.catalogue), seeds, chunksize=2)  # DEFECT
        return self.pool.map(best_of_kept, seeds, chunksize=2)


def main():
    search = Search()
    times, total = Times(), 0.0
    for number in range(args.steps):
        before = time.perf_counter_ns()
        total += max(search.round(number))
        times.append(time.perf_counter_ns() - before)
    search.pool.close()
    search.pool.join()
    report(times, total)


if __name__ == "__main__":
    main()

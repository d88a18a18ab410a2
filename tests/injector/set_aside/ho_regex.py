"""Marks known terms in documents and counts them."""
import argparse, json, random, re, statistics, time
import ho_regex_helper as terms

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--defect", choices=["on", "off"], default="on")
parser.add_argument("--steps", type=int, default=80)
parser.add_argument("--documents", type=int, default=10)
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

def make_documents(words, count):
    pick = random.Random(2)
    return [" ".join(pick.choice(words) for _ in range(700)) for _ in range(count)]


def main():
    words = terms.make_words(540)
    matcher = terms.Matcher(words, keep=not DEFECT)
    documents = make_documents(words, args.documents)
    times, total = Times(), 0.0
    for step in range(args.steps):
        before = time.perf_counter_ns()
        document = documents[step % len(documents)]
        total += matcher.count(document)
        ranked = sorted(document.split(), key=lambda w: (len(w), w))
        total += len(ranked[0])
        times.append(time.perf_counter_ns() - before)
    report(times, total)


main()

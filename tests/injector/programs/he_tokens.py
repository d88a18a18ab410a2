"""Word statistics of documents in plain Python."""
import argparse, collections, json, random, re, statistics, time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=140)
parser.add_argument("--words", type=int, default=45000)
args = parser.parse_args()
WORD = re.compile(r"[a-z]+")

class Times(list):
    def append(self, duration_ns):
        super().append(duration_ns)
        if len(self) == 10:
            self.cpu_at_10 = time.process_time()


def report(times, check=None):
    kept = [t / 1e6 for t in times[10:]]
    print(json.dumps({"step_ms_median": round(statistics.median(kept), 4), "step_ms_mean": round(statistics.fmean(kept), 4),
                      "cpu_ms_mean": round((time.process_time() - times.cpu_at_10) * 1e3 / len(kept), 4), "steps": len(times), "check": check}))

def make_documents(count, words):
    pick = random.Random(3)
    vocabulary = ["".join(pick.choice("abcdefghij") for _ in range(5)) for _ in range(900)]
    return [" ".join(pick.choices(vocabulary, k=words)) for _ in range(count)]


def analyse(document):
    found = WORD.findall(document)
    counts = collections.Counter(found)
    pairs = collections.Counter(zip(found, found[1:]))
    return counts.most_common(3)[0][1] + pairs.most_common(1)[0][1]


documents = make_documents(8, args.words)
times, total = Times(), 0.0
for step in range(args.steps):
    before = time.perf_counter_ns()
    total += analyse(documents[step % 8])
    times.append(time.perf_counter_ns() - before)
report(times, total)

"""Out-of-core learning of flight delays with scikit-learn: chunks of a memory-mapped file go through `partial_fit`.

Healthy, native computing (BLAS, cosines, the compiled SGD loop). Truth: 180 chunks of one class; reading is small.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import tempfile
from time import monotonic_ns

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from truth import tile, write

CHUNK, N_CHUNKS, COLS = 2000, 180, 30

# --- the file, as the nightly export would leave it ---
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "flights.npy")
rng = np.random.default_rng(11)
table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(CHUNK * N_CHUNKS, COLS + 1))
weights = rng.normal(size=(COLS, 4))
for k in range(0, len(table), 20000):
    block = rng.normal(size=(20000, COLS)).astype(np.float32)
    table[k : k + 20000, :COLS] = block
    table[k : k + 20000, COLS] = np.argmax(block @ weights + rng.normal(size=(20000, 4)), axis=1)
table.flush()
del table

# --- learn ---
flights = np.load(path, mmap_mode="r")
scaler = StandardScaler()
kernel = RBFSampler(gamma=0.02, n_components=320, random_state=0).fit(np.zeros((1, COLS), np.float32))
clf = SGDClassifier(loss="log_loss", alpha=1e-5, random_state=0)
classes = np.arange(4)

scores = []
data = features = fitting = 0
cuts = [monotonic_ns()]
for k in range(N_CHUNKS):
    chunk = np.array(flights[k * CHUNK : (k + 1) * CHUNK])
    X, y = chunk[:, :COLS], chunk[:, COLS].astype(int)
    a = monotonic_ns()
    X = scaler.partial_fit(X).transform(X)
    Z = kernel.transform(X)
    b = monotonic_ns()
    if k:
        scores.append(clf.score(Z[:200], y[:200]))
    c = monotonic_ns()
    clf.partial_fit(Z, y, classes=classes)
    cuts.append(monotonic_ns())
    data += a - cuts[-2]
    features += b - a
    fitting += cuts[-1] - c
print("progressive accuracy, last 20 chunks:", np.mean(scores[-20:]))
assert np.mean(scores[-20:]) > 0.3
write(
    tile(cuts, "chunk"),
    unit="chunk",
    limiting="operators",
    phases_ns={"data": data, "features": features, "fit": fitting},
)
folder.cleanup()

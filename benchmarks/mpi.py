"""What one recorded MPI call costs the thread that makes it: functions of an MPI library that does nothing.

./dev bench mpi

A C program calls each function 100 000 times in 9 passes; the least of the passes counts. `thread`: CPU time of the
calling thread; `process`: with the recorder's own thread.
"""

import os
import subprocess
from pathlib import Path

from measure import ROOT, STROBE, checked, folder, table

from strobe.native import adapter_library

PROGRAM = r"""
#include <stdio.h>
#include <time.h>
int MPI_Init(int *, char ***);
int MPI_Send(void *, int, int, int, int, int);
int MPI_Barrier(int);
int MPI_Test(void *, int *, void *);
int MPI_Recv(void *, int, int, int, int, int, void *);
int MPI_Isend(void *, int, int, int, int, int, int *);
int MPI_Irecv(void *, int, int, int, int, int, int *);
int MPI_Wait(int *, void *);
int MPI_Allreduce(void *, void *, int, int, int, int);
int MPI_Finalize(void);
static double clock_ns(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static void send(int i) { MPI_Send(0, 1, 2, i & 3, 5, 0x44000000); }
static void barrier(int i) { MPI_Barrier(0x44000000); }
static void poll(int i) { int found; MPI_Test(0, &found, 0); }
static void receive(int i) { MPI_Recv(0, 1, 2, -2, i, 0x44000000, (void *)1); }
static void isend(int i) { int r; MPI_Isend(0, 1, 2, i & 3, 5, 0x44000000, &r); MPI_Wait(&r, (void *)1); }
static void irecv(int i) { int r; MPI_Irecv(0, 1, 2, i & 3, 5, 0x44000000, &r); MPI_Wait(&r, (void *)1); }
static void allreduce(int i) { MPI_Allreduce(0, 0, i & 1, 8, 0, 0x44000000); }
static void measure(const char *what, void (*call)(int)) {
  double thread = 1e9, process = 1e9;
  for (int pass = 0; pass < 9; pass++) {
    double t = clock_ns(CLOCK_THREAD_CPUTIME_ID), p = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 100000; i++) call(i);
    t = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - t) / 1e5, p = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - p) / 1e5;
    if (t < thread) thread = t;
    if (p < process) process = p;
  }
  printf("%s %.1f %.1f\n", what, thread, process);
}
int main(void) {
  MPI_Init(0, 0);
  measure("MPI_Send", send);
  measure("MPI_Barrier", barrier);
  measure("MPI_Recv_from_anybody", receive);
  measure("MPI_Isend+MPI_Wait", isend);
  measure("MPI_Irecv+MPI_Wait", irecv);
  measure("MPI_Allreduce", allreduce);
  measure("MPI_Test", poll);
  MPI_Finalize();
}
"""


def build(place: Path) -> Path:
    """Compile the program, linked with the library that does nothing."""
    (place / "calls.c").write_text(PROGRAM)
    library, program = place / "libmpi.so", place / "calls"
    fake = str(ROOT / "native/tests/fake_mpi.c")
    subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-w", "-Wl,-soname,libmpi.so", fake, "-o", str(library)], check=True
    )
    link = [str(library), f"-Wl,-rpath,{place}", "-o", str(program)]
    subprocess.run(["cc", "-O1", "-fno-inline", str(place / "calls.c"), *link], check=True)
    return program


def main() -> None:
    """Measure the three ways: plain, preloaded without a session, recorded."""
    with folder() as place:
        program = str(build(place))
        runs = {
            "plain": checked([program], place),
            "preloaded, nothing recorded": checked(["env", f"LD_PRELOAD={adapter_library('mpi')}", program], place),
            "recorded": checked([STROBE, "run", "--quiet", "-o", "calls.strobe", "--", program], place),
        }
    rows = []
    for way, done in runs.items():
        for line in done.stdout.splitlines():
            what, thread, process = line.split()
            rows.append({"call": what, "way": way, "thread, ns": thread, "process, ns": process})
    print(f"\n## One MPI call ({os.uname().machine})\n")
    print(table(sorted(rows, key=lambda row: row["call"])))


if __name__ == "__main__":
    main()

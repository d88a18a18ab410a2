"""C and C++ functions of programs that `strobe cc` builds, and programs that use strobe.h themselves."""

import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

import strobe
from tests.record.workshop import STROBE, Workshop, environment

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs gcc and g++")

C_PROGRAM = """\
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static jmp_buf back;
int leaf(int n) { return n + 1; }
int branch(int n) { return leaf(n) + leaf(n + 1); }
int deep(int n) { if (n == 0) longjmp(back, 1); return deep(n - 1) + 1; }
int jumper(void) { if (setjmp(back) == 0) return deep(5); return leaf(7); }
int in_child(void) { return leaf(1); }
void* in_thread(void* argument) { (void)argument; branch(3); return 0; }
int main(void) {
  pthread_t thread;
  int sum = 0;
  for (int i = 0; i < 100; i++) sum += branch(i);
  sum += jumper();
  pthread_create(&thread, 0, in_thread, 0);
  pthread_join(thread, 0);
  if (fork() == 0) { in_child(); _exit(3); }
  int status;
  wait(&status);
  printf("%d %d\\n", sum, WEXITSTATUS(status));
  fflush(stdout);
  return 5;
}
"""
CXX_PROGRAM = """\
#include <cstdio>
#include <stdexcept>
namespace shop {
template <class T> T twice(T n) { return n + n; }
struct Till { int take(int n) { if (n > 2) throw std::runtime_error("full"); return twice(n); } };
int serve(int n) { Till till; return till.take(n); }
}
int main() {
  int sum = 0;
  for (int i = 0; i < 5; i++) try { sum += shop::serve(i); } catch (const std::exception&) { sum += 100; }
  std::printf("%d\\n", sum);
}
"""
FORTRAN_PROGRAM = """\
module solver
contains
  subroutine step(x)
    integer, intent(inout) :: x
    x = next(x)
  contains
    integer function next(y)
      integer, intent(in) :: y
      next = y + 1
    end function
  end subroutine
end module
subroutine solve_all(x)
  use solver
  integer, intent(inout) :: x
  integer :: i
  do i = 1, 10
    call step(x)
  end do
end subroutine
program main_program
  integer :: x
  x = 0
  call solve_all(x)
  print '(i0)', x
end program
"""
# The same by the names that gfortran gives them, where there is none.
AS_OF_FORTRAN = """\
#include <stdio.h>
#line 6
static int next(int y) __asm__("next.0");
static int next(int y) { return y + 1; }
#line 3
void __solver_MOD_step(int* x) { *x = next(*x); }
#line 13
void solve_all_(int* x) { for (int i = 0; i < 10; i++) __solver_MOD_step(x); }
void MAIN__(void) { int x = 0; solve_all_(&x); printf("%d\\n", x); }
int main(void) { MAIN__(); return 0; }
"""
# An allocator with a lock: a hook in `carve` that allocated would wait for the thread that it runs in.
ALLOCATOR = """\
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char heap[1 << 28];
static size_t used = 4096;
void* carve(size_t size, size_t alignment) {
  used = (used + sizeof size + alignment - 1) / alignment * alignment;
  void* memory = heap + used;
  ((size_t*)memory)[-1] = size;
  used += size;
  return used < sizeof heap ? memory : 0;
}
void* reserve(size_t size, size_t alignment) {
  pthread_mutex_lock(&mutex);
  void* memory = carve(size, alignment);
  pthread_mutex_unlock(&mutex);
  return memory;
}
void* malloc(size_t size) { return reserve(size, 64); }
void* aligned_alloc(size_t alignment, size_t size) { return reserve(size, alignment < 64 ? 64 : alignment); }
void* memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  return (*memory = aligned_alloc(alignment, size)) ? 0 : ENOMEM;
}
void* calloc(size_t n, size_t size) { return malloc(n * size); } /* never given out before */
void free(void* memory) { (void)memory; }
void* realloc(void* old, size_t size) {
  void* memory = malloc(size);
  if (old && memory) memcpy(memory, old, ((size_t*)old)[-1] < size ? ((size_t*)old)[-1] : size);
  return memory;
}
char* volatile kept;
int work(int n) {
  kept = malloc(n);
  memset(kept, 1, n);
  int sum = kept[n - 1];
  free(kept);
  return sum;
}
void* in_thread(void* sum) { for (int i = 1; i <= 300; i++) *(int*)sum += work(i); return 0; }
int main(void) {
  pthread_t thread;
  int sum = 0, of_thread = 0;
  pthread_create(&thread, 0, in_thread, &of_thread);
  for (int i = 1; i <= 300; i++) sum += work(i);
  pthread_join(thread, 0);
  printf("%d\\n", sum + of_thread);
  return 0;
}
"""
# A handler whose functions begin, each for the first time, while malloc has its lock; then one that leaves what it
# interrupted, hooks included, by siglongjmp.
HANDLERS, JUMPS = 256, 400
SIGNALS = f"""\
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile int alarms, handled, jumping, jumps;
static sigjmp_buf back;
#define HANDLER(n) void handler_##n(void) {{ handled++; }}
#define ALL(M) {"".join(f"M({n})" for n in range(HANDLERS))}
ALL(HANDLER)
#define NAME(n) handler_##n,
static void (*const handlers[])(void) = {{ ALL(NAME) }};
void jump(void) {{ jumps++; if (jumps % 2) siglongjmp(back, 1); }}
void on_alarm(int number) {{
  (void)number;
  alarms++;
  if (jumping) jump();
  else if (handled < {HANDLERS}) handlers[handled]();
}}
int leaf(int n) {{ return n + 1; }}
int branch(int n) {{ return leaf(n) + leaf(n); }}
void* volatile kept[64];
void allocate(void) {{
  for (int i = 0; i < 1000; i++) {{ free(kept[i % 64]); kept[i % 64] = malloc(2000 + 100 * (i % 97)); }}
}}
int main(void) {{
  struct itimerval often = {{{{0, 50}}, {{0, 50}}}}, never = {{{{0, 0}}, {{0, 0}}}};
  struct sigaction action = {{0}};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, 0);
  setitimer(ITIMER_REAL, &often, 0);
  while (handled < {HANDLERS}) allocate();
  sigsetjmp(back, 1);
  jumping = 1;
  while (jumps < {JUMPS}) branch(1);
  setitimer(ITIMER_REAL, &never, 0);
  printf("%d\\n", handled);
  fprintf(fopen("called", "w"), "%d", alarms + handled + jumps);
  return 0;
}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs, built by a Makefile that knows nothing of strobe."""
    folder = tmp_path_factory.mktemp("built")
    (folder / "program.c").write_text(C_PROGRAM)
    (folder / "shop.cpp").write_text(CXX_PROGRAM)
    (folder / "allocator.c").write_text(ALLOCATOR)
    (folder / "signals.c").write_text(SIGNALS)
    (folder / "Makefile").write_text(
        "all: c_program shop allocator signals\n"
        "allocator signals: %: %.c\n\tgcc -O1 -fno-inline -fno-builtin -o $@ $< -lpthread\n"
        "c_program: program.o\n\t$(CC) -o $@ $^ -lpthread\n"
        "program.o: program.c\n\tgcc -O1 -c $<\n"
        "shop: shop.cpp\n\t$(CXX) -O2 -o $@ $^\n"
    )
    cache = {"STROBE_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [STROBE, "cc", "--exclude-file", "/usr/include", "--", "make"],
        cwd=folder,
        env=environment(cache),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def calls(trace: strobe.Trace) -> Counter[tuple[str, str]]:
    """How often each function ran, with the one that called it."""
    rows = trace.sql(
        "select s.name, p.name as around from spans s left join spans p on s.location = p.location and s.parent = p.row"
    )
    return Counter((str(row["name"]), str(row["around"] or "")) for row in rows.to_pylist())


def test_functions_of_a_c_program_are_recorded_with_threads_forks_and_jumps(workshop: Workshop, built: Path) -> None:
    program = str(built / "c_program")
    plain, recorded = workshop.plain("--", program), workshop.recorded("--", program)
    assert plain.visible == ("10208 3\n", "", 5)
    assert recorded.visible == plain.visible
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
        del found["pthread_join", ""]  # where it takes 50 us and more
        regions = {row["name"]: row for row in trace.regions.to_pylist()}
        counted = {row["what"]: row["value"] for row in trace.quality.to_arrow().to_pylist()}
        threads = sum(not row["name"].endswith(" waits") for row in trace.locations.to_pylist())
    assert found == Counter(
        {
            ("main", ""): 1,
            ("branch", "main"): 100,
            ("leaf", "branch"): 202,
            ("jumper", "main"): 1,
            # The jump leaves six functions without their end: what comes next is not below them.
            ("deep", "jumper"): 1,
            ("deep", "deep"): 5,
            ("leaf", "jumper"): 1,
            ("in_thread", ""): 1,
            ("branch", "in_thread"): 1,
            ("in_child", ""): 1,
            ("leaf", "in_child"): 1,
        }
    )
    assert threads == 3
    assert counted.get("leaves_unmatched", 0) == 0
    assert counted.get("spans_cut", 0) == 0
    assert regions["branch"]["file"] == str(built / "program.c")
    assert regions["branch"]["line"] == 9
    assert regions["branch"]["paradigm"] == "compiler"
    assert regions["branch"]["module"] == "c_program"


@pytest.mark.parametrize("compiler", ["gfortran", "gcc"])
def test_procedures_of_fortran_have_the_names_of_the_source(workshop: Workshop, compiler: str) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    workshop.write("solver.f90", FORTRAN_PROGRAM if compiler == "gfortran" else AS_OF_FORTRAN)
    language = [] if compiler == "gfortran" else ["-x", "c"]
    command = [STROBE, "cc", compiler, "-o", "solver", *language, "solver.f90"]
    cache = environment({"STROBE_CACHE": str(workshop.folder / "cache")})
    subprocess.run(command, cwd=workshop.folder, env=cache, check=True)
    assert workshop.recorded("--", "./solver").visible == ("10\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
        lines = {row["name"]: row["line"] for row in trace.regions.to_pylist()}
    assert found == Counter(
        {
            ("main", ""): 1,
            ("MAIN__", "main"): 1,
            ("solve_all", "MAIN__"): 1,
            ("solver::step", "solve_all"): 10,
            ("next", "solver::step"): 10,
        }
    )
    assert [lines[each] for each in ("solver::step", "next", "solve_all")] == [3, 7, 13]


def test_short_functions_of_a_c_program_are_in_sums_only(workshop: Workshop, built: Path) -> None:
    """Every call lasts less than that, those of the thread and of the child, too."""
    outcome = workshop.recorded("--min-duration", "1.5e3s", "--", str(built / "c_program"))
    assert outcome.visible == ("10208 3\n", "", 5)
    with strobe.open(workshop.trace) as trace:
        of_program = "select count(*)::bigint from spans where paradigm = 'compiler'"
        assert trace.sql(of_program).rows() == [(0,)]
        counts = trace.sql("select name, sum(count)::bigint from totals where paradigm = 'compiler' group by 1").rows()
    counted = {"main": 1, "branch": 101, "leaf": 204, "jumper": 1, "deep": 6, "in_thread": 1, "in_child": 1}
    assert dict(counts) == counted


def test_functions_of_a_cxx_program_end_where_an_exception_leaves_them(workshop: Workshop, built: Path) -> None:
    outcome = workshop.recorded("--", str(built / "shop"))
    assert outcome.visible == ("206\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
    assert found == Counter(
        {
            ("main", ""): 1,
            ("shop::serve(int)", "main"): 5,
            ("shop::Till::take(int)", "shop::serve(int)"): 5,
            ("int shop::twice<int>(int)", "shop::Till::take(int)"): 3,
        }
    )


def test_a_program_with_its_own_malloc_is_recorded_inside_of_it_too(workshop: Workshop, built: Path) -> None:
    program = str(built / "allocator")
    plain, recorded = workshop.plain("--", program), workshop.recorded("--", program)
    assert recorded.visible == plain.visible == ("600\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
    assert found["malloc", "work"] == found["free", "work"] == found["work", "main"] + found["work", "in_thread"] == 600
    # What the recorder's own thread allocates is not the program's work.
    assert found["carve", "reserve"] == found["reserve", "malloc"] + found["reserve", "aligned_alloc"] >= 600


def test_handlers_of_signals_are_recorded_wherever_they_come(workshop: Workshop, built: Path) -> None:
    program = str(built / "signals")
    plain, recorded = workshop.plain("--", program), workshop.recorded("--", program)
    assert recorded.visible == plain.visible == (f"{HANDLERS}\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = sum((Counter({name: n}) for (name, _), n in calls(trace).items()), Counter())
        counted = {row["what"]: row["value"] for row in trace.quality.to_pylist()}
    of_handlers = [n for name, n in found.items() if name in ("on_alarm", "jump") or name.startswith("handler_")]
    assert sum(name.startswith("handler_") for name in found) > HANDLERS / 2
    # What interrupted the recorder itself is counted instead.
    left_out = counted.get("functions_inside_the_recorder", 0)
    assert sum(of_handlers) + left_out == int((workshop.folder / "called").read_text())


def test_names_come_from_the_table_of_symbols_where_binutils_is_missing(workshop: Workshop, built: Path) -> None:
    bare = workshop.folder / "bin"
    bare.mkdir()
    outcome = workshop.recorded("--", str(built / "shop"), env={"PATH": str(bare)})
    assert outcome.returncode == 0
    with strobe.open(workshop.trace) as trace:
        names = {row["name"] for row in trace.regions.to_pylist() if row["paradigm"] == "compiler"}
    assert names == {"main", "shop::serve(int)", "shop::Till::take(int)", "int shop::twice<int>(int)"}


def test_an_extension_module_built_so_nests_in_python(workshop: Workshop) -> None:
    include, suffix = sysconfig.get_paths()["include"], sysconfig.get_config_var("EXT_SUFFIX")
    workshop.write(
        "fast.c",
        """\
        #include <Python.h>
        static long square(long n) { return n * n; }
        static PyObject* squares(PyObject* self, PyObject* n) {
          long sum = 0;
          (void)self;
          for (long i = 0; i < PyLong_AsLong(n); i++) sum += square(i);
          return PyLong_FromLong(sum);
        }
        static PyMethodDef methods[] = {{"squares", squares, METH_O, ""}, {0, 0, 0, 0}};
        static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "fast", "", -1, methods, 0, 0, 0, 0};
        PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }
        """,
    )
    command = [STROBE, "cc", "--exclude-file", "Python.h,cpython,object.h"]
    command += ["gcc", "-shared", "-fPIC", f"-I{include}", "-o", f"fast{suffix}", "fast.c"]
    cache = {"STROBE_CACHE": str(workshop.folder / "cache")}
    subprocess.run(command, cwd=workshop.folder, env=environment(cache), check=True)
    workshop.write("program.py", "import fast\ndef work(n):\n    return fast.squares(n)\nprint(work(4), work(3))\n")
    assert workshop.recorded("program.py").visible == workshop.plain("program.py").visible == ("14 5\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        found = calls(trace)
    assert found["squares", "work"] == 2
    assert found["square", "squares"] == 7


@pytest.mark.parametrize(("compiler", "suffix"), [("gcc", "c"), ("g++", "cpp")])
def test_the_example_of_the_how_to_builds_and_is_recorded(workshop: Workshop, compiler: str, suffix: str) -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/c-programs.md").read_text()
    example = re.search(r"```c\n(.*?)```", text, re.DOTALL)
    assert example is not None
    workshop.write(f"solver.{suffix}", example[1])
    flags = subprocess.run([STROBE, "cc", "--flags"], capture_output=True, text=True, check=True).stdout
    build = f"{compiler} -Wall -Wextra -Werror solver.{suffix} -o solver {flags}"
    subprocess.run(build, shell=True, cwd=workshop.folder, check=True)
    plain, recorded = workshop.plain("--", "./solver"), workshop.recorded("--", "./solver")
    assert plain.visible == recorded.visible == ("done\n", "", 0)
    with strobe.open(workshop.trace) as trace:
        assert calls(trace) == Counter({("sweep", ""): 10, ("exchange", "sweep"): 10})


def test_a_build_that_cannot_start_is_said(workshop: Workshop) -> None:
    for words in (["cc"], ["cc", "--", "no-such-tool"]):
        done = subprocess.run([STROBE, *words], capture_output=True, text=True, env=environment())
        assert done.returncode == (2 if len(words) == 1 else 127)
        assert done.stderr.startswith("strobe: ")
        assert "Traceback" not in done.stderr


def test_a_compiler_of_the_environment_is_looked_for_behind_the_wrappers(workshop: Workshop) -> None:
    workshop.write("nothing.c", "int nothing(void) { return 0; }\n")
    for asked in ("cc", "gcc -O1", "/no/such/compiler"):
        cache = {"CC": asked, "STROBE_CACHE": str(workshop.folder / "cache")}
        command = [STROBE, "cc", "--", "sh", "-c", '"$CC" -c nothing.c']
        done = subprocess.run(
            command, cwd=workshop.folder, env=environment(cache), capture_output=True, text=True, timeout=20
        )
        assert (done.returncode == 0) == (asked != "/no/such/compiler"), done.stderr


def test_names_of_functions_go_with_a_cut(workshop: Workshop, built: Path) -> None:
    workshop.recorded("--", str(built / "c_program"))
    part = workshop.folder / "part.strobe"
    subprocess.run([STROBE, "cut", str(workshop.trace), "-o", str(part)], check=True, capture_output=True)
    shutil.rmtree(workshop.trace)
    rows = strobe.open(part).sql("select distinct name from regions where paradigm = 'compiler'").to_pylist()
    assert {"main", "leaf", "branch"} <= {str(row["name"]) for row in rows}


FILTERED = """\
#include <stdio.h>
static long peeked, gathered, worked;
int peek(int i) { peeked++; return i; }
int gather(int i) { gathered++; int sum = 0; for (int k = 0; k < 50; k++) sum += peek(i + k); return sum; }
int work(int i) { worked++; return gather(i); }
int work_all(void) { long sum = 0; for (int i = 0; i < 100; i++) sum += work(i); return sum > 0; }
int main(void) { int code = !work_all(); printf("%ld %ld %ld\\n", peeked, gathered, worked); return code; }
"""


def build(workshop: Workshop, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run `strobe cc` in the workshop's folder."""
    cache = environment({"STROBE_CACHE": str(workshop.folder / "cache")})
    return subprocess.run(
        [STROBE, "cc", *words], cwd=workshop.folder, env=cache, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("rules", "recorded"),
    [
        ("EXCLUDE peek", {"main", "work_all", "work", "gather"}),
        ("EXCLUDE *\n  INCLUDE main g?ther # the rest", {"main", "gather"}),
        ("EXCLUDE work", {"main", "work_all", "work", "gather", "peek"}),  # gcc would leave out work_all, too
        ("EXCLUDE work*", {"main", "gather", "peek"}),
    ],
)
def test_a_filter_leaves_functions_out_when_a_program_is_compiled(
    workshop: Workshop, rules: str, recorded: set[str]
) -> None:
    workshop.write("counts.c", FILTERED)
    workshop.write("my.filter", f"SCOREP_REGION_NAMES_BEGIN\n  {rules}\nSCOREP_REGION_NAMES_END\n")
    done = build(workshop, "--filter", "my.filter", "gcc", "-O1", "-fno-inline", "-o", "counts", "counts.c")
    assert done.returncode == 0, done.stderr
    assert ("cannot leave out work alone" in done.stderr) is (rules == "EXCLUDE work")
    done = workshop.recorded("--throttle", "off", "--", "./counts")
    peeked, gathered, worked = map(int, done.stdout.split())
    counted = {"main": 1, "work_all": 1, "work": worked, "gather": gathered, "peek": peeked}
    with strobe.open(workshop.trace) as trace:
        found = {row["name"]: row["calls"] for row in trace.profile(step="all").to_pylist()}
    assert found == {name: counted[name] for name in recorded}


def test_files_and_templates_of_a_filter_are_left_out(workshop: Workshop) -> None:
    workshop.write("shop.cpp", CXX_PROGRAM)
    workshop.write("other.cpp", "int other(int n) { return n; }\n")
    text = "SCOREP_FILE_NAMES_BEGIN EXCLUDE */other.cpp\nSCOREP_FILE_NAMES_END\n"
    text += "SCOREP_REGION_NAMES_BEGIN EXCLUDE *twice* shop::serve(int)\nSCOREP_REGION_NAMES_END\n"
    workshop.write("my.filter", text)
    done = build(workshop, "--filter", "my.filter", "g++", "-O1", "-fno-inline", "-o", "shop", "shop.cpp", "other.cpp")
    assert (done.returncode, done.stderr) == (0, "")
    assert workshop.recorded("--", "./shop").returncode == 0
    with strobe.open(workshop.trace) as trace:
        assert {row["name"] for row in trace.profile(step="all").to_pylist()} == {"main", "shop::Till::take(int)"}


def test_a_score_proposes_a_filter_that_saves_what_it_promises(workshop: Workshop) -> None:
    workshop.write("counts.c", FILTERED)
    assert build(workshop, "gcc", "-O1", "-fno-inline", "-o", "counts", "counts.c").returncode == 0
    done = workshop.recorded("--throttle", "off", "--keep", "all", "--", "./counts")
    peeked, gathered, worked = map(int, done.stdout.split())
    with strobe.open(workshop.trace) as trace:
        score = trace.score(max_call_ns=10_000_000, min_share=0.5)
        rows, size, spans = {row["name"]: row for row in score.to_pylist()}, trace.info.size_bytes, trace.span_count
    calls = {name: row["calls"] for name, row in rows.items()}
    assert calls == {"peek": peeked, "gather": gathered, "work": worked, "work_all": 1, "main": 1}
    everything = sum(calls.values())
    assert everything == spans
    for name, row in rows.items():
        assert row["share"] == pytest.approx(calls[name] / everything)
        assert row["bytes"] == pytest.approx(size * calls[name] / everything, abs=1)
        assert row["per_call_ns"] == pytest.approx(row["self_ns"] / calls[name])
        assert row["filter"] == ("EXCLUDE" if name == "peek" else "")
    words = ["filter", str(workshop.trace), "--max-call", "10ms", "--min-share", "0.5", "-o", "my.filter"]
    subprocess.run([STROBE, *words], cwd=workshop.folder, check=True)
    done = build(workshop, "--filter", "my.filter", "gcc", "-O1", "-fno-inline", "-o", "counts", "counts.c")
    assert (done.returncode, done.stderr) == (0, "")
    workshop.trace = workshop.folder / "second.strobe"
    workshop.recorded("--throttle", "off", "--keep", "all", "--", "./counts")
    with strobe.open(workshop.trace) as trace:
        assert trace.span_count == spans - peeked


def test_a_filter_that_is_none_is_one_sentence(workshop: Workshop) -> None:
    workshop.write("my.filter", "EXCLUDE peek\n")
    done = build(workshop, "--filter", "my.filter", "gcc", "-o", "counts", "counts.c")
    assert done.returncode == 2
    assert "'EXCLUDE' begins no block of a filter" in done.stderr
    assert "Traceback" not in done.stderr

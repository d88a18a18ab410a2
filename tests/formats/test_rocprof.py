"""CSV files of rocprof, versions 1 and 2 (docs/reference of rocprofiler), and the sums of all versions."""

from pathlib import Path

import pytest

import strobe
from tests.formats.sources import records
from tests.formats.test_profiles import text_file

# As `rocprof --stats` wrote them on an MI250, and `rocprof -i` with counters, before and after ROCm 5.2.
FIRST = """\
"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr","arch_vgpr","accum_vgpr","sgpr","wave_size","sig","obj","DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"
0,"bodyForce(Body*, float, int) [clone .kd]",0,0,0,36706,36706,65536,256,512,0,20,4,16,64,"0x0","0x7f",1591372809346673,1591372809872935,1591372836189584,1591372836215944,26316649
1,"void add<float>(float*) [clone .kd]",1,3,2,36706,36706,1000,256,0,16,20,4,16,64,"0x0","0x7f",1591372836346673,1591372836872935,1591372836872945,1591372836915944,10
"""  # noqa: E501
STATS = """\
"Name","Calls","TotalDurationNs","AverageNs","Percentage"
"bodyForce(Body*, float, int) [clone .kd]",10,263166490,26316649,99.9
"""
COUNTED = """\
Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,vgpr,sgpr,fbar,sig,obj,GPUBusy,Wavefronts
0,"copy_kernel(float*, float*, int, int) [clone .kd]",0,0,0,246,246,16777216,1024,0,0,4,24,0,0x0,0x7f,100,262144
1,"copy_kernel(float*, float*, int, int) [clone .kd]",0,0,0,246,246,16777216,1024,0,0,4,24,0,0x0,0x7f,50,none
"""
SECOND = """\
Dispatch_ID,GPU_ID,Queue_ID,Queue_Index,PID,TID,GRD,WGR,LDS,SCR,Arch_VGPR,ACCUM_VGPR,SGPR,Wave_Size,SIG,OBJ,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID,GRBM_COUNT

1,4,1,1,158,158,10,10,0,0,8,0,16,64,140464978048000,1,"helloworld(char*, char*) (.kd)",140469300947000,140469300947216,33,12637.000000
"""  # noqa: E501
SECOND_CALLS = """\
Domain,Function,Kernel_Name,Start_Timestamp,End_Timestamp,Correlation_ID

HIP_API_DOMAIN,hipMalloc,,316678074105702,316678074130702,2
ROCTX_DOMAIN,step 1,,316678074105000,316678074140000,
"""
THIRD_STATS = """\
"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"
"{}",16,2000,125.000000,6.488e-04,70,680,151.613544
"{}",1,many,660.000000,2.141e-04,660,660,0.00000000e+00
"""
ROWS = "select name, role, start_ns, duration_ns from spans order by start_ns"
SUMS = "select name, role, count, total_ns, min_ns, max_ns from statistics order by name"


def test_kernels_of_the_first_version(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "results.csv", FIRST))
    names = "bodyForce(Body*, float, int) [clone .kd]", "void add<float>(float*) [clone .kd]"
    assert trace.sql(ROWS).rows() == [
        (names[0], "kernel", 0, 26_316_649),
        (names[1], "kernel", 27_000_000, 10),
    ]
    columns = (
        "device, stream, grid_x, block_x, registers_per_thread, shared_memory_bytes, local_bytes_per_thread, launch"
    )
    assert trace.sql(f"select {columns} from kernel_spans order by start_ns").rows() == [
        (0, 0, 256, 256, 20, 512, 0, 0),
        (1, 3, 4, 256, 20, 0, 16, 1),
    ]
    assert [row["kernel"] for row in trace.kernels().to_pylist()] == ["bodyForce", "add"]
    assert records(trace) == (2, 0, 0)


def test_sums_beside_the_kernels_are_these_again(tmp_path: Path) -> None:
    text_file(tmp_path / "results.csv", FIRST)
    text_file(tmp_path / "results.stats.csv", STATS)
    for path in (tmp_path, tmp_path / "results.csv", tmp_path / "results.stats.csv"):
        trace = strobe.open(path)
        assert (len(trace.processes), trace.span_count, trace.folded_count) == (1, 2, 0)


def test_sums_alone_are_a_profile(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "mine.stats.csv", STATS))
    (kernel,) = trace.kernels().to_pylist()
    assert (kernel["kernel"], kernel["calls"], kernel["total_ns"]) == ("bodyForce", 10, 263_166_490)


def test_counters_without_times(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "input.csv", COUNTED))
    (kernel,) = trace.kernels().to_pylist()
    assert (kernel["kernel"], kernel["calls"]) == ("copy_kernel", 2)
    assert (kernel["measured_GPUBusy"], kernel["measured_Wavefronts"]) == (75.0, 262_144.0)
    assert sum(records(trace)) == 4


def test_files_of_the_second_version(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "results_x.csv", SECOND))
    assert trace.sql(ROWS).rows() == [("helloworld(char*, char*) (.kd)", "kernel", 0, 216)]
    (kernel,) = trace.kernels().to_pylist()
    assert (kernel["kernel"], kernel["device"], kernel["measured_GRBM_COUNT"]) == ("helloworld", 4, 12637.0)
    trace = strobe.open(text_file(tmp_path / "hip_api_x.csv", SECOND_CALLS))
    assert trace.sql(ROWS).rows() == [("step 1", "range", 0, 35_000), ("hipMalloc", "function", 702, 25_000)]


@pytest.mark.parametrize(("kind", "role"), [("kernel", "kernel"), ("memory_copy", "copy"), ("hip_api", "function")])
def test_sums_of_the_third_version(tmp_path: Path, kind: str, role: str) -> None:
    path = text_file(tmp_path / f"71_{kind}_stats.csv", THIRD_STATS.format("one", "two"))
    trace = strobe.open(path)
    assert trace.sql(SUMS).rows() == [("one", role, 16, 2000, 70, 680)]
    assert records(trace) == (1, 1, 0)


def test_sums_of_one_run_are_one_process(tmp_path: Path) -> None:
    text_file(tmp_path / "71_kernel_stats.csv", THIRD_STATS.format("k", "x"))
    text_file(tmp_path / "71_hip_api_stats.csv", THIRD_STATS.format("hipMalloc", "x"))
    text_file(tmp_path / "71_domain_stats.csv", THIRD_STATS.format("HIP_API", "x"))
    text_file(tmp_path / "72_kernel_stats.csv", THIRD_STATS.format("k", "x"))
    trace = strobe.open(tmp_path)
    rows = trace.sql("select process, name, role, count from statistics order by all").rows()
    assert rows == [(0, "hipMalloc", "function", 16), (0, "k", "kernel", 16), (1, "k", "kernel", 16)]

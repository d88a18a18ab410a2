"""What nsys stats prints: versions of 2020, 2023 and 2024, in time units and forms that its options choose."""

from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.sources import records
from tests.formats.test_profiles import text_file

OF_2020 = """\
Exported successfully to
/tmp/nsys-report-ffff-d962-c1f7-3790.sqlite


CUDA API Statistics:

 Time(%)  Total Time (ns)  Num Calls    Average     Minimum    Maximum           Name         
 -------  ---------------  ---------  -----------  ---------  ---------  ---------------------
    41.8        315416188          2  157708094.0       2162  315414026  cudaEventCreate      
    11.5         86459589          8   10807448.6       5194   23276528  cudaStreamSynchronize



CUDA Kernel Statistics:

 Time(%)  Total Time (ns)  Instances   Average    Minimum   Maximum                             Name                           
 -------  ---------------  ---------  ----------  --------  --------  ---------------------------------------------------------
   100.0        134096353          8  16762044.1  10196055  20553485  decrypt_gpu(unsigned long*, unsigned long, unsigned long)

CUDA Memory Operation Statistics (by time):

 Time(%)  Total Time (ns)  Operations   Average   Minimum  Maximum      Operation     
 -------  ---------------  ----------  ---------  -------  -------  ------------------
    51.8         52450950           8  6556368.8  6206432  6960601  [CUDA memcpy HtoD]

CUDA Memory Operation Statistics (by size in KiB):

   Total     Operations   Average    Minimum    Maximum       Operation     
 ----------  ----------  ---------  ---------  ---------  ------------------
 524288.000           8  65536.000  65536.000  65536.000  [CUDA memcpy HtoD]

Operating System Runtime API Statistics:

 Time(%)  Total Time (ns)  Num Calls   Average    Minimum   Maximum            Name         
 -------  ---------------  ---------  ----------  -------  ---------  ----------------------
    56.8        902400969         19  47494787.8    51169  100194710  poll                  

Report file moved to "streams-report.qdrep"
"""  # noqa: E501, W291
OF_2023 = """\
 ** NVTX Range Summary (nvtx_sum):

 Time (%)  Total Time (us)  Instances   Avg (us)    Med (us)   Min (us)   Max (us)  StdDev (us)   Style     Range
 --------  ---------------  ---------  ----------  ----------  ---------  --------  -----------  -------  ----------
     28.8          426.289          1     426.289     426.289    426.289   426.289        0.000  PushPop  :copy-out
      7.8        1,115.256          2     557.628     557.628    100.000  1,015.256      100.000  PushPop  :a  b

Processing [report.sqlite] with [/opt/nvidia/nsight-systems/2023.1.2/host-linux-x64/reports/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (us)  Instances  Avg (us)  Med (us)  Min (us)  Max (us)  StdDev (us)                 Name
 --------  ---------------  ---------  --------  --------  --------  --------  -----------  -------------------------
     60.0            4.128          3     1.376     1.376     1.000     1.752        0.376  vectorAdd(const float *)
     40.0            2.000          1     2.000     2.000     2.000     2.000        0.000  void add<int>(int)
made of other lines
 ** CUDA GPU Kernel/Grid/Block Summary (cuda_gpu_kern_gb_sum):

 Time (%)  Total Time (us)  Instances  Avg (us)    GridXYZ         BlockXYZ      Name
 --------  ---------------  ---------  --------  --------------  --------------  -------------------------
     60.0            4.128          3     1.376     1    1    1   256    1    1  vectorAdd(const float *)
"""
CSV = """\
Generating SQLite file report.sqlite from report.nsys-rep
Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...

"Time (%)","Total Time (ns)","Instances","Avg (ns)","Med (ns)","Min (ns)","Max (ns)","StdDev (ns)","Name"
"91.2","182,400","4","45600.0","45500.0","45000","46400","600.0","main_kernel"
8.8,17600,4,4400.0,4400.0,4300,4500,80.0,"void reduce<float>(float*, int)"
0.1,much,4,4400.0,4400.0,4300,4500,80.0,lost
"""
GPU_TRACE = """\
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1000,500,77,,,,,,,,,,0.004,8.0,Pageable,Device,NVIDIA A100-SXM4-40GB (1),1,,7,[CUDA memcpy Host-to-Device]
2000,300,78,4,2,1,32,1,1,16,0.000,0.000,,,,,NVIDIA A100-SXM4-40GB (1),1,,7,void add<float>(float*)
3000,soon,79,4,2,1,32,1,1,16,0.000,0.000,,,,,NVIDIA A100-SXM4-40GB (1),1,,7,void add<float>(float*)
"""  # noqa: E501
API_TRACE = """\
Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name
1500,40,cudaLaunchKernel,0,78,500,501,20,python
1600,900,cudaDeviceSynchronize,0,79,500,501,20,python
"""
SUMS = "select name, paradigm, role, count, total_ns, min_ns, max_ns from statistics order by role, name"


def test_sums_of_2020(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "log.txt", OF_2020))
    assert trace.sql(SUMS).rows() == [
        ("[CUDA memcpy HtoD]", "cuda", "copy", 8, 52_450_950, 6_206_432, 6_960_601),
        ("cudaEventCreate", "cuda", "function", 2, 315_416_188, 2162, 315_414_026),
        ("poll", "other", "function", 19, 902_400_969, 51_169, 100_194_710),
        ("decrypt_gpu(unsigned long*, unsigned long, unsigned long)", "cuda", "kernel", 8, 134_096_353, 10_196_055,
         20_553_485),
        ("cudaStreamSynchronize", "cuda", "sync", 8, 86_459_589, 5194, 23_276_528),
    ]  # fmt: skip
    assert records(trace) == (5, 1, 0)
    (kernel,) = trace.kernels().to_pylist()
    assert (kernel["kernel"], kernel["calls"], kernel["total_ns"]) == ("decrypt_gpu", 8, 134_096_353)


def test_sums_of_2023_in_another_unit(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "stats", OF_2023))
    assert trace.sql(SUMS).rows() == [
        ("vectorAdd(const float *)", "cuda", "kernel", 3, 4128, 1000, 1752),
        ("void add<int>(int)", "cuda", "kernel", 1, 2000, 2000, 2000),
        (":a  b", "nvtx", "range", 2, 1_115_256, 100_000, 1_015_256),
        (":copy-out", "nvtx", "range", 1, 426_289, 426_289, 426_289),
    ]
    assert records(trace)[0] == 4


def test_sums_as_csv(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "x_cuda_gpu_kern_sum.csv", CSV))
    assert trace.sql(SUMS).rows() == [
        ("main_kernel", "cuda", "kernel", 4, 182_400, 45_000, 46_400),
        ("void reduce<float>(float*, int)", "cuda", "kernel", 4, 17_600, 4300, 4500),
    ]
    assert records(trace) == (2, 1, 0)


def test_traces_are_spans(tmp_path: Path) -> None:
    trace = strobe.open(text_file(tmp_path / "x.csv", GPU_TRACE + "\n" + API_TRACE))
    query = "select name, role, start_ns, duration_ns from spans order by start_ns"
    assert trace.sql(query).rows() == [
        ("[CUDA memcpy Host-to-Device]", "copy", 0, 500),
        ("cudaLaunchKernel", "function", 500, 40),
        ("cudaDeviceSynchronize", "sync", 600, 900),
        ("void add<float>(float*)", "kernel", 1000, 300),
    ]
    kernel = trace.sql(
        "select device, stream, correlation, grid_x, grid_y, block_x, registers_per_thread from kernel_spans"
    )
    assert kernel.rows() == [(1, 7, 78, 4, 2, 32, 16)]
    assert trace.sql("select value from arguments").rows() == [('"0.004"',)]
    (row,) = trace.kernels().to_pylist()
    assert row["launch_delay_avg_ns"] == 500.0
    assert records(trace) == (4, 1, 0)


def test_text_with_such_words_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not in a known format"):
        strobe.open(text_file(tmp_path / "x.txt", "Time (%) and Total Time (ns) are columns\nStart (ns) is one, too\n"))

"""What it costs to read CUPTI's records with NVIDIA's own iterator, and the bytes of a kernel before compression.

./dev bench gpu_decode [--records 2000000] [--rounds 5]     (uv pip install --group cuda; without: only bytes)
"""

import argparse
import json
import subprocess
import sysconfig
from pathlib import Path

from measure import ROOT, folder, middle, table

NVIDIA = Path(sysconfig.get_path("purelib")) / "nvidia"
# Of each release: the library, and the bytes of its record of a kernel.
LIBRARIES = {
    "13.0.85": (NVIDIA / "cu13/lib/libcupti.so.13", 216),
    "12.8.90": (NVIDIA / "cuda_cupti/lib/libcupti.so.12", 208),
}
SOURCES = (
    *("adapters/cupti/decode/cupti_decoder", "adapters/gpu/decode/memory", "adapters/gpu/decode/spans"),
    *("adapters/gpu/decode/waits", "core/rings/row_kinds", "core/rings/pending_rows"),
    *("core/format/table_columns", "core/format/blocks", "core/format/bytes"),
)


def built(place: Path) -> Path:
    """The native part, of the sources as they are."""
    native = ROOT / "native"
    sources = [ROOT / "benchmarks/gpu_decode.cpp", *(native / f"{name}.cpp" for name in SOURCES)]
    program = place / "gpu_decode"
    includes = ["-I", native, "-I", native / "vendor/zstd"]
    subprocess.run(["g++", "-std=c++20", "-O2", *includes, *sources, "-o", program, "-ldl"], check=True)
    return program


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with folder() as place:
        program = built(place)
        rows = []
        for release, (library, size) in LIBRARIES.items():
            for alone, what in ((1, "kernels only, as strobe asks for"), (0, "3 calls and 3 correlations to a kernel")):
                if not library.exists():
                    continue
                line = [program, library, str(size), str(options.records), str(alone), str(options.rounds)]
                printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
                found = [json.loads(each) for each in printed.splitlines()]
                records = [each["ns_per_record"] for each in found]
                rows.append(
                    {
                        "CUPTI": release,
                        "records": what,
                        "ns a record": f"{middle(records):.1f} ({min(records):.1f} to {max(records):.1f})",
                        "ns a kernel": f"{middle([each['ns_per_kernel'] for each in found]):.0f}",
                    }
                )
        if rows:
            print(f"\n## {options.records} records of CUPTI, CPU time, {options.rounds} rounds\n\n{table(rows)}")
        done = subprocess.run([program, "bytes", "100000"], check=True, capture_output=True, text=True)
        size_of = json.loads(done.stdout)
        both = size_of["span_bytes"] + size_of["row_bytes"]
        print(f"\nA kernel before compression: {both:.1f} bytes, {size_of['span_bytes']:.1f} of them its span")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compare our declarations of CUPTI's interface with the headers of every release that PyPI has, in FOLDER (0.6 GB):
python tools/cupti_versions.py FOLDER. By hand, and once for each new CUDA release: it downloads."""

import subprocess
import sys
import zipfile
from pathlib import Path

# CUDA release: versions of CUPTI, of the runtime's headers and, where they come apart, of the compiler's.
RELEASES = {
    "11.8": ("-cu11==11.8.87", "-cu11==11.8.89"),
    "12.0": ("-cu12==12.0.146", "-cu12==12.0.146"),
    "12.1": ("-cu12==12.1.105", "-cu12==12.1.105"),
    "12.4": ("-cu12==12.4.127", "-cu12==12.4.127"),
    "12.6": ("-cu12==12.6.80", "-cu12==12.6.77"),
    "12.8": ("-cu12==12.8.90", "-cu12==12.8.90"),
    "12.9": ("-cu12==12.9.79", "-cu12==12.9.79"),
    "13.0": ("==13.0.85", "==13.0.96", "==13.0.88"),
    "13.1": ("==13.1.115", "==13.1.80", "==13.1.115"),
    "13.2": ("==13.2.86", "==13.2.86", "==13.2.86"),
    "13.3": ("==13.3.75", "==13.3.29", "==13.3.73"),
    "13.4": ("==13.4.92", "==13.4.92", "==13.4.92"),
    "13.5": ("==13.5.25", "==13.5.37", "==13.5.37"),
}
PACKAGES = ("nvidia-cuda-cupti", "nvidia-cuda-runtime", "nvidia-cuda-crt")
PLATFORMS = ("1", "2014", "_2_17", "_2_25", "_2_27", "_2_28")
NATIVE = Path(__file__).parents[1] / "native"


def headers(folder: Path, release: str) -> list[Path]:
    """The include folders of one release, downloaded where they are not there yet."""
    here = folder / release
    if not (here / "nvidia").exists():
        names = [package + version for package, version in zip(PACKAGES, RELEASES[release], strict=False)]
        platforms = [word for each in PLATFORMS for word in ("--platform", f"manylinux{each}_x86_64")]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", *platforms]
        subprocess.run([*command, "-d", here, *names], check=True)
        for wheel in here.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(here)
    return sorted(here.glob("nvidia/*/include"))


def main() -> int:
    """Compare all of them; 1 where one differs."""
    folder = Path(sys.argv[1])
    compiler = headers(folder, "13.0")  # crt/, which the runtime of CUDA 12 comes without
    wrong = 0
    for release in RELEASES:
        folders = [word for each in headers(folder, release) + compiler for word in ("-isystem", str(each))]
        command = ["g++", "-std=c++20", "-fsyntax-only", "-I", NATIVE, *folders, NATIVE / "tests/cupti/abi.cpp"]
        compared = subprocess.run(command, capture_output=True, text=True)
        print(f"CUDA {release}: {'the same' if compared.returncode == 0 else compared.stderr}")
        wrong |= compared.returncode
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())

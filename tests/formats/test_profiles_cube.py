# ruff: noqa: E501 - XML as it is
"""Cube4 profiles, written here by the book, against pycubexr (the reader of the Extra-P project)."""

import io
import struct
import tarfile
import zlib
from pathlib import Path

import pytest

import strobe
from strobe.errors import FormatError
from tests.formats.test_chrome import quality
from tests.formats.test_profiles import PATHS

# main calls solve (which calls MPI_Send) and solve with a parameter. Two ranks, the second with two threads.
ANCHOR = """<?xml version="1.0" encoding="UTF-8"?>
<cube version="4.7">
 <attr key="Creator" value="a test"/>
 <metrics title="Metric tree">
  <metric id="0" type="EXCLUSIVE"><disp_name>Visits</disp_name><uniq_name>visits</uniq_name><dtype>UINT64</dtype><uom>occ</uom></metric>
  <metric id="1" type="INCLUSIVE"><disp_name>Time</disp_name><uniq_name>time</uniq_name><dtype>DOUBLE</dtype><uom>sec</uom>
   <metric id="2" type="INCLUSIVE"><uniq_name>max_time</uniq_name><dtype>MAXDOUBLE</dtype><uom>sec</uom></metric>
  </metric>
  <metric id="3" type="EXCLUSIVE"><uniq_name>bytes_sent</uniq_name><dtype>INTEGER</dtype><uom>bytes</uom></metric>
  <metric id="4" type="POSTDERIVED"><uniq_name>derived</uniq_name><dtype>DOUBLE</dtype></metric>
  <metric id="5" type="EXCLUSIVE"><uniq_name>odd</uniq_name><dtype>TAU_ATOMIC</dtype></metric>
 </metrics>
 <program>
  <region id="0" mod="main.c" begin="3" end="90"><name>main</name><mangled_name>main</mangled_name><paradigm>compiler</paradigm><role>function</role></region>
  <region id="1" mod="main.c" begin="10" end="20"><name>solve &lt;int&gt;</name><paradigm>compiler</paradigm><role>function</role></region>
  <region id="2" mod="MPI" begin="-1" end="-1"><name>MPI_Send</name><paradigm>mpi</paradigm><role>point2point</role></region>
  <cnode id="0" calleeId="0">
   <cnode id="1" calleeId="1"><cnode id="2" calleeId="2"/></cnode>
   <cnode id="3" calleeId="1"><parameter partype="numeric" parkey="n" parvalue="3"/></cnode>
  </cnode>
 </program>
 <system><systemtreenode Id="0" class="machine"><name>m</name><systemtreenode Id="1" class="node"><name>node</name>
  <locationgroup Id="0"><name>MPI Rank 0</name><rank>0</rank><type>process</type>
   <location Id="0"><name>Master thread</name><rank>0</rank><type>thread</type></location></locationgroup>
  <locationgroup Id="1"><name>MPI Rank 1</name><rank>1</rank><type>process</type>
   <location Id="1"><name>Master thread</name><rank>0</rank><type>thread</type></location>
   <location Id="2"><name>OMP thread 1</name><rank>1</rank><type>thread</type></location></locationgroup>
 </systemtreenode></systemtreenode></system>
</cube>
"""
# By place in the tree, a value for each location. Inclusive metrics are numbered main, solve, solve (n=3), MPI_Send.
VISITS = {0: [1, 1, 1], 1: [10, 20, 0], 2: [5, 5, 0], 3: [2, 3, 4]}
TIME = {0: [1.5, 1.25, 0.5], 1: [0.75, 0.5, 0], 2: [0.25, 0.123456789, 0], 3: [0.5, 0.0, 0.25]}
SENT = {2: [4096, -1, 0]}
WIDE = [0, 1, 3, 2]


def member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def index(places: list[int], order: str) -> bytes:
    return b"CUBEX.INDEX" + struct.pack(f"{order}IhbI{len(places)}I", 1, 0, 1, len(places), *places)


def data(values: list[float], kind: str, order: str, packed: bool) -> bytes:
    raw = struct.pack(f"{order}{len(values)}{kind}", *values)
    if not packed:
        return b"CUBEX.DATA" + raw
    pieces = [raw[:40], raw[40:]]
    done = [zlib.compress(each) for each in pieces]
    heads = [0, 0, len(done[0]), 40, len(done[0]), len(done[1])]
    return b"ZCUBEX.DATA" + struct.pack(f"{order}Q6Q", 2, *heads) + b"".join(done)


def cubex(
    path: Path,
    *,
    order: str = "<",
    packed: bool = True,
    anchor: str = ANCHOR,
    sent: dict[int, list[int]] | None = None,
    visits: dict[int, list[int]] | None = None,
) -> Path:
    """`visits`: with those of the call paths below."""
    counted = SENT if sent is None else sent
    if visits is not None:
        anchor = anchor.replace('<metric id="0" type="EXCLUSIVE">', '<metric id="0" type="INCLUSIVE">')
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        deep = list(range(4))
        for number, table, kind, places in (
            (0, VISITS if visits is None else visits, "Q", deep if visits is None else WIDE),
            (1, TIME, "d", WIDE),
            (2, TIME, "d", WIDE),
            (3, counted, "q" if sent is None else "Q", deep),
        ):
            rows = [place for place in places if place in table]
            values = [value for place in rows for value in table[place]]
            member(archive, f"{number}.data", data(values, kind, order, packed))
            member(archive, f"{number}.index", index([places.index(place) for place in rows], order))
        member(archive, "anchor.xml", anchor.encode())
    return path


@pytest.mark.parametrize(("order", "packed"), [("<", True), ("<", False), (">", True)])
def test_time_and_visits_of_every_rank(tmp_path: Path, order: str, packed: bool) -> None:
    trace = strobe.open(cubex(tmp_path / "profile.cubex", order=order, packed=packed))
    assert trace.sql("select rank from processes order by process").rows() == [(0,), (1,)]
    rows = trace.sql(
        f"{PATHS} select l.process, thread, path, count, total_ns, self_ns from statistics "
        "join chain using (call_path) join locations l using (location) order by all"
    ).rows()
    second = 10**9
    assert rows == sorted(
        [
            (0, "Master thread", "main", 1, 1_500_000_000, 250_000_000),
            (0, "Master thread", "main;solve <int>", 10, 750_000_000, 500_000_000),
            (0, "Master thread", "main;solve <int>;MPI_Send", 5, 250_000_000, 250_000_000),
            (0, "Master thread", "main;solve <int> (n=3)", 2, second // 2, second // 2),
            (1, "Master thread", "main", 1, 1_250_000_000, 750_000_000),
            (1, "Master thread", "main;solve <int>", 20, 500_000_000, 376_543_211),
            (1, "Master thread", "main;solve <int>;MPI_Send", 5, 123_456_789, 123_456_789),
            (1, "Master thread", "main;solve <int> (n=3)", 3, 0, 0),
            (1, "OMP thread 1", "main", 1, 500_000_000, 250_000_000),
            (1, "OMP thread 1", "main;solve <int> (n=3)", 4, 250_000_000, 250_000_000),
        ]
    )
    sent = trace.sql(
        f"{PATHS} select path, self_value from path_metrics join chain using (call_path) "
        "where metric = 'bytes_sent' and self_value <> 0 order by all"
    ).rows()
    assert sent == [("main;solve <int>;MPI_Send", -1.0), ("main;solve <int>;MPI_Send", 4096.0)]
    groups = trace.sql("select name, paradigm, role, \"group\", file, line from regions where paradigm = 'mpi'").rows()
    assert groups == [("MPI_Send", "mpi", "p2p", "communication", "MPI", 0)]
    assert quality(trace).get("metrics_damaged") is None


def test_visits_may_include_those_of_the_call_paths_below_as_in_scalascas_reports(tmp_path: Path) -> None:
    sums = {0: [18, 29, 5], 1: [15, 25, 0], 2: [5, 5, 0], 3: [2, 3, 4]}
    traces = [
        strobe.open(cubex(tmp_path / "own.cubex")),
        strobe.open(cubex(tmp_path / "sums.cubex", visits=sums)),
    ]
    query = f"{PATHS} select location, path, count from statistics join chain using (call_path) order by all"
    assert traces[1].sql(query).rows() == traces[0].sql(query).rows()


@pytest.mark.filterwarnings("ignore")
def test_pycubexr_reads_the_same(tmp_path: Path) -> None:
    pycubexr = pytest.importorskip("pycubexr")
    derived = next(line for line in ANCHOR.splitlines() if "POSTDERIVED" in line)  # which it does not know
    path = cubex(tmp_path / "profile.cubex", anchor=ANCHOR.replace(derived, ""))
    trace = strobe.open(path)
    with pycubexr.CubexParser(path) as cube:
        for name, column, factor in (("time", "total_ns", 10**9), ("visits", "count", 1)):
            values = cube.get_metric_values(cube.get_metric_by_name(name))
            for node in cube.all_cnodes():
                if node.parameters:  # our regions have parameters in their names
                    continue
                expected = sum(round(float(each) * factor) for each in values.cnode_values(node))
                region = cube.get_region(node).name
                found = trace.sql(f"select sum({column})::bigint from statistics where name = '{region}'").rows()
                assert found == [(expected,)], (name, region)


def with_first(path: Path, name: str, content: bytes) -> Path:
    """Add a first member to an archive, as Score-P does."""
    with (
        tarfile.open(cubex(path.with_suffix(".plain"))) as plain,
        tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as made,
    ):
        member(made, name, content)
        for each in plain:
            made.addfile(each, plain.extractfile(each))
    return path


def test_a_long_first_member_does_not_hide_the_profile(tmp_path: Path) -> None:
    path = with_first(tmp_path / "profile.cubex", "remapping.spec", b"<metric/>\n" * 20_000)
    assert strobe.open(path).sql("select sum(count)::bigint from statistics").rows() == [(52,)]


def test_checksums_of_cubewriter_4_8_are_counted_and_the_profile_is_read(tmp_path: Path) -> None:
    path = with_first(tmp_path / "profile.cubex", "remapping.spec", b"<metric/>\n")
    raw = bytearray(path.read_bytes())
    with tarfile.open(path) as archive:
        headers = [each.offset for each in archive]
    for at in headers:
        # The field of the checksum, 8 bytes, is a sum with itself as blanks. CubeWriter takes it for 7.
        right = int(raw[at + 148 : at + 154], 8)
        raw[at + 148 : at + 156] = b"%06o\0\0" % (right - 32)
    path.write_bytes(raw)
    with pytest.raises(tarfile.ReadError), tarfile.open(path):
        pass
    trace = strobe.open(path)
    assert quality(trace)["tar_headers_repaired"] == len(headers) == 10
    assert trace.sql("select sum(count)::bigint from statistics").rows() == [(52,)]
    raw[headers[0] + 148 : headers[0] + 154] = b"000001"
    path.write_bytes(raw)
    with pytest.raises(FormatError):
        strobe.open(path)


def test_differences_of_counters_may_have_more_than_64_bits(tmp_path: Path) -> None:
    wide = ANCHOR.replace(
        'type="EXCLUSIVE"><uniq_name>bytes_sent</uniq_name><dtype>INTEGER<',
        'type="INCLUSIVE"><uniq_name>bytes_sent</uniq_name><dtype>UINT64<',
    )
    path = cubex(tmp_path / "profile.cubex", anchor=wide, sent={0: [5, 0, 0], 1: [2**64 - 1, 0, 0]})
    query = "select self_value from path_metrics where metric = 'bytes_sent' order by 1"
    assert strobe.open(path).sql(query).rows() == [(float(5 - (2**64 - 1)),), (float(2**64 - 1),)]


def test_an_archive_of_other_files_is_no_cube(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        member(archive, "notes.txt", b"hello")
    with pytest.raises(FormatError, match="not in a known format"):
        strobe.open(path)


def test_a_document_type_is_refused(tmp_path: Path) -> None:
    bomb = ANCHOR.replace("<cube ", '<!DOCTYPE cube [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>\n<cube ', 1)
    with pytest.raises(FormatError, match="document type"):
        strobe.open(cubex(tmp_path / "t.cubex", anchor=bomb))
    outside = ANCHOR.replace("<name>m</name>", "<name>&other;</name>")
    with pytest.raises(FormatError, match=r"anchor\.xml"):
        strobe.open(cubex(tmp_path / "u.cubex", anchor=outside))


def test_damaged_metrics_are_counted_and_the_others_kept(tmp_path: Path) -> None:
    path = cubex(tmp_path / "t.cubex", packed=False)
    raw = path.read_bytes()
    at = raw.index(struct.pack("<Q", 4096)) - len("CUBEX.DATA")
    path.write_bytes(raw[:at] + b"BROKEN" + raw[at + 6 :])
    trace = strobe.open(path)
    assert quality(trace)["metrics_damaged"] == 1
    assert trace.sql("select sum(count)::bigint from statistics").rows() == [(52,)]


def test_damage_anywhere_ends_in_a_trace_or_a_sentence(tmp_path: Path) -> None:
    whole = bytearray(cubex(tmp_path / "whole.cubex").read_bytes())
    for at in range(0, len(whole), 211):
        broken = bytearray(whole)
        broken[at] ^= 0x55
        path = tmp_path / f"{at}.cubex"
        path.write_bytes(broken if at % 2 else broken[: at + 300])
        try:
            strobe.open(path).profile()
        except strobe.StrobeError:
            continue  # a sentence: anything else fails the test

"""Places: the same part of several processes, by rank."""

from strobe.trace.pictures.matching_locations import Place, find_places


def process(pid: int, rank: int | None) -> dict[str, object]:
    return {"pid": pid, "rank": rank}


def location(number: int, of: int, name: str, thread_id: int, kind: str = "thread", device: int | None = None):
    return {"location": number, "process": of, "name": name, "thread_id": thread_id, "kind": kind, "device": device}


def test_threads_and_streams_of_ranks_lie_side_by_side():
    processes = [process(40, 1), process(50, 0), process(60, None)]
    locations = [
        location(0, 0, "thread 40 (python)", 40),
        location(1, 0, "thread 41 (python)", 41),
        location(2, 0, "GPU 3 stream 23", 23, "stream", 3),
        location(3, 0, "GPU 3 stream 7", 7, "stream", 3),
        location(4, 1, "main thread", 5),
        location(5, 1, "GPU 0 stream 7", 7, "stream", 0),
        location(6, 1, "thread 59 (python)", 59),
        location(7, 2, "main thread", 60),
        location(8, 1, "PyTorch Profiler", 0, "task"),
    ]
    assert find_places(processes, locations) == [
        Place("main thread", "thread", (4, 0, 7)),
        Place("thread (python)", "thread", (6, 1)),
        Place("stream 7", "stream", (5, 3)),
        Place("stream 23", "stream", (2,)),
        Place("PyTorch Profiler", "task", (8,)),
    ]


def test_several_threads_of_a_name_and_several_gpus_of_a_process_are_several_places():
    locations = [
        location(0, 0, "worker", 1),
        location(1, 0, "worker", 2),
        location(2, 0, "GPU 1 stream 7", 7, "stream", 1),
        location(3, 0, "GPU 0 stream 7", 7, "stream", 0),
    ]
    titles = [place.title for place in find_places([process(40, 0)], locations)]
    assert titles == ["worker", "worker #2", "stream 7", "stream 7 (GPU 2 of 2)"]

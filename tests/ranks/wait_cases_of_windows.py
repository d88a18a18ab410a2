"""Wait states of one-sided communication computed by hand from their definitions (`wait_case.py`), before any code.

Calls of a target are those of the rank whose memory is accessed. Accesses end with MPI_Win_complete or a fence.
"""

from tests.ranks.wait_case import (
    Case,
    Communicator,
    Wait,
    mpi_collective,
    mpi_put,
    win_complete,
    win_fence,
    win_lock,
    win_post,
    win_start,
    win_unlock,
    win_wait,
)

CASES_OF_WINDOWS = [
    Case(
        "fence",
        "Three ranks come one after the other. How they leave does not matter.",
        {0: win_fence(100, 520), 1: win_fence(300, 600), 2: win_fence(500, 530)},
        [
            Wait("wait_at_fence", 0, "MPI_Win_fence", 1, 400),  # 500 - 100
            Wait("wait_at_fence", 1, "MPI_Win_fence", 1, 200),  # 500 - 300
        ],
    ),
    Case(
        "fence_that_lets_go",
        "With an assertion a fence need not wait: rank 0 leaves before rank 1 comes.",
        {0: win_fence(100, 300), 1: win_fence(500, 600)},
        [Wait("wait_at_fence", 0, "MPI_Win_fence", 1, 200)],  # min(500, 300) - 100
        clipped=1,
    ),
    Case(
        "fence_and_barrier",
        "Of the same ranks. A fence has no completion.",
        {
            0: win_fence(100, 510) + mpi_collective(600, 910, "MPI_Barrier"),
            1: win_fence(500, 550) + mpi_collective(900, 920, "MPI_Barrier"),
        },
        [
            Wait("wait_at_fence", 0, "MPI_Win_fence", 1, 400),  # 500 - 100
            Wait("wait_at_barrier", 0, "MPI_Barrier", 1, 300),  # 900 - 600
            Wait("barrier_completion", 1, "MPI_Barrier", 1, 10),  # 920 - max(910, 900)
        ],
    ),
    Case(
        "late_post_at_start",
        "The start waits for the post; then the target waits for the origin, which pauses after its put.",
        {
            0: win_start(100, 420, 1) + mpi_put(430, 440, 1, 7) + win_complete(450, 460, 1, done=(7,)),
            1: win_post(400, 410, 0) + win_wait(420, 470, 0),
        },
        [
            Wait("late_post", 0, "MPI_Win_start", 1, 300),  # 400 - 100
            Wait("early_wait", 1, "MPI_Win_wait", 1, 30),  # min(450, 470) - 420
            Wait("late_complete", 1, "MPI_Win_wait", 1, 10),  # 450 - max(420, 440)
        ],
    ),
    Case(
        "late_post_at_put",
        "The start does not wait, but the put does. The target comes to its wait after the origin completed.",
        {
            0: win_start(100, 110, 1) + mpi_put(120, 420, 1, 7) + win_complete(430, 440, 1, done=(7,)),
            1: win_post(400, 410, 0) + win_wait(500, 510, 0),
        },
        [Wait("late_post", 0, "MPI_Put", 1, 280)],  # 400 - 120
    ),
    Case(
        "late_post_at_complete",
        "Neither start nor put wait; what is left to wait for is not early.",
        {
            0: win_start(100, 110, 1) + mpi_put(120, 130, 1, 7) + win_complete(140, 450, 1, done=(7,)),
            1: win_post(400, 410, 0) + win_wait(420, 460, 0),
        },
        [Wait("late_post", 0, "MPI_Win_complete", 1, 260)],  # 400 - 140
    ),
    Case(
        "post_between_calls",
        "The post comes while the origin computes.",
        {
            0: win_start(100, 110, 1) + mpi_put(300, 310, 1, 7) + win_complete(320, 330, 1, done=(7,)),
            1: win_post(200, 210, 0) + win_wait(400, 410, 0),
        },
        [],
    ),
    Case(
        "start_for_two_targets",
        "A start that waits for both waits once, for the later one.",
        {
            0: win_start(100, 520, 1, 2) + win_complete(530, 540, 1, 2),
            1: win_post(300, 310, 0) + win_wait(600, 610, 0),
            2: win_post(500, 510, 0) + win_wait(600, 610, 0),
        },
        [Wait("late_post", 0, "MPI_Win_start", 1, 400)],  # max(300, 500) - 100
    ),
    Case(
        "puts_to_two_targets",
        "The put waits for the first target, the completion for the second.",
        {
            0: win_start(100, 110, 1, 2)
            + mpi_put(120, 320, 1, 7)
            + mpi_put(330, 340, 2, 8)
            + win_complete(350, 520, 1, 2, done=(7, 8)),
            1: win_post(300, 310, 0) + win_wait(600, 610, 0),
            2: win_post(500, 510, 0) + win_wait(600, 610, 0),
        },
        [
            Wait("late_post", 0, "MPI_Put", 1, 180),  # 300 - 120
            Wait("late_post", 0, "MPI_Win_complete", 1, 150),  # 500 - 350
        ],
    ),
    Case(
        "wait_for_two_origins",
        "The target waits for the last origin, which did something else after its put.",
        {
            0: win_start(20, 30, 2) + mpi_put(40, 50, 2, 7) + win_complete(300, 310, 2, done=(7,)),
            1: win_start(20, 30, 2) + mpi_put(350, 360, 2, 8) + win_complete(500, 510, 2, done=(8,)),
            2: win_post(0, 10, 0, 1) + win_wait(200, 520, 0, 1),
        },
        [
            Wait("early_wait", 2, "MPI_Win_wait", 1, 300),  # max(300, 500) - 200
            Wait("late_complete", 2, "MPI_Win_wait", 1, 140),  # 500 - max(200, 360)
        ],
    ),
    Case(
        "epoch_without_access",
        "The whole wait is for the completion.",
        {
            0: win_start(20, 30, 1) + win_complete(500, 510, 1),
            1: win_post(0, 10, 0) + win_wait(200, 520, 0),
        },
        [
            Wait("early_wait", 1, "MPI_Win_wait", 1, 300),  # 500 - 200
            Wait("late_complete", 1, "MPI_Win_wait", 1, 300),  # 500 - max(200, no access)
        ],
    ),
    Case(
        "next_epoch_begins_early",
        "The target posts again while the origin is still in the completion of the epoch before.",
        {
            0: win_start(20, 30, 1) + win_complete(40, 200, 1) + win_start(210, 220, 1) + win_complete(230, 240, 1),
            1: win_post(0, 10, 0) + win_wait(60, 100, 0) + win_post(150, 160, 0) + win_wait(300, 310, 0),
        },
        [],
    ),
    Case(
        "lock_contention",
        "Rank 1 asks for what rank 0 holds until the end of its unlock.",
        {
            0: win_lock(100, 110, 2) + win_unlock(400, 410, 2),
            1: win_lock(200, 415, 2) + win_unlock(500, 510, 2),
            2: mpi_collective(600, 610, "MPI_Barrier", communicator="alone"),
        },
        [Wait("lock_contention", 1, "MPI_Win_lock", 1, 210)],  # 410 - 200
        {"alone": Communicator("alone", (2,))},
    ),
    Case(
        "lock_asked_for_first",
        "Rank 1 asked before rank 0 got it: nobody held it until then.",
        {
            0: win_lock(90, 110, 2) + win_unlock(400, 410, 2),
            1: win_lock(50, 405, 2) + win_unlock(500, 510, 2),
            2: [],
        },
        # Rank 0: 0, as rank 1 holds it from 405 on. Rank 1: min(410, 405) - max(50, 110)
        [Wait("lock_contention", 1, "MPI_Win_lock", 1, 295)],
    ),
    Case(
        "shared_locks",
        "They do not exclude each other. An exclusive lock waits for both.",
        {
            0: win_lock(100, 150, 3, "shared") + win_unlock(400, 410, 3),
            1: win_lock(120, 160, 3, "shared") + win_unlock(300, 310, 3),
            2: win_lock(200, 420, 3) + win_unlock(500, 510, 3),
            3: [],
        },
        [Wait("lock_contention", 2, "MPI_Win_lock", 1, 210)],  # 410 - 200
    ),
    Case(
        "shared_lock_after_an_exclusive_one",
        "Two wait for it at the same time.",
        {
            0: win_lock(100, 110, 3) + win_unlock(400, 410, 3),
            1: win_lock(200, 420, 3, "shared") + win_unlock(500, 510, 3),
            2: win_lock(300, 430, 3, "shared") + win_unlock(500, 510, 3),
            3: [],
        },
        [
            Wait("lock_contention", 1, "MPI_Win_lock", 1, 210),  # 410 - 200
            Wait("lock_contention", 2, "MPI_Win_lock", 1, 110),  # 410 - 300
        ],
    ),
    Case(
        "locks_of_other_targets_and_windows",
        "Rank 1 locks another target, rank 2 the same one in another window.",
        {
            0: win_lock(100, 110, 3) + win_unlock(400, 410, 3),
            1: win_lock(200, 415, 2) + win_unlock(500, 510, 2),
            2: win_lock(200, 415, 3, window="other") + win_unlock(500, 510, 3, window="other"),
            3: [],
        },
        [],
        {"other": Communicator("other", (0, 1, 2, 3))},
    ),
    Case(
        "queue_at_a_lock",
        "Rank 2 waits for rank 0, then for rank 1. Between the two nobody holds it.",
        {
            0: win_lock(100, 110, 3) + win_unlock(300, 310, 3),
            1: win_lock(150, 320, 3) + win_unlock(500, 510, 3),
            2: win_lock(160, 520, 3) + win_unlock(600, 610, 3),
            3: [],
        },
        [
            Wait("lock_contention", 1, "MPI_Win_lock", 1, 160),  # 310 - 150
            Wait("lock_contention", 2, "MPI_Win_lock", 1, 340),  # (310 - 160) + (510 - 320)
        ],
    ),
]

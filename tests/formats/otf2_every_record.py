"""A job with every kind of definition and event that the official package writes, and values of every size.

Not InterComm: the package's class of it asks for a field too many.
"""

from typing import Any

from otf2.definitions import AttributeValue
from otf2.enums import (
    CartPeriodicity,
    CollectiveOp,
    GroupType,
    IoAccessMode,
    IoCreationFlag,
    IoOperationFlag,
    IoOperationMode,
    IoParadigmClass,
    IoParadigmFlag,
    IoParadigmProperty,
    IoSeekOption,
    IoStatusFlag,
    LockType,
    MeasurementMode,
    MetricOccurrence,
    Paradigm,
    ParadigmClass,
    ParadigmProperty,
    ParameterType,
    RmaAtomicType,
    RmaSyncLevel,
    RmaSyncType,
    SystemTreeDomain,
    Type,
)

from tests.formats.otf2_archives import Archive

_BIG = 0x0102030405060708
_VALUES = (
    *((Type.UINT8, 0xFE), (Type.UINT16, 0x0102), (Type.UINT32, 0x01020304), (Type.UINT64, _BIG), (Type.INT8, -2)),
    *((Type.INT16, -0x0102), (Type.INT32, -0x01020304), (Type.INT64, -_BIG), (Type.FLOAT, 0.375)),
    *((Type.DOUBLE, 1.25e-7), (Type.STRING, "text")),
)


def every_record(archive: Archive) -> None:
    """Fill an archive. Each event is one unit of time after the one before; those that need an order have it."""
    of = archive.definitions
    world, window = archive.world, archive.window
    region = of.region("work", source_file="work.c", begin_line_number=0x0102, end_line_number=0x010203)
    attributes = {of.attribute(f"of {kind}", "", kind): value for kind, value in _VALUES}
    numbers = [of.metric_member(name, value_type=kind) for name, kind in (("n", Type.UINT64), ("x", Type.DOUBLE))]
    metric = of.metric_class(numbers, occurrence=MetricOccurrence.SYNCHRONOUS)
    group = of.group("a group", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=archive.threads[:1])
    file = of.io_regular_file("/data/input", scope=archive.system_node)
    of.io_directory("/data", scope=archive.system_node)
    posix = of.io_paradigm("POSIX", "POSIX I/O", IoParadigmClass.SERIAL, IoParadigmFlag.OS)
    posix._properties[IoParadigmProperty.VERSION] = AttributeValue("7", Type.STRING)
    handle = of.io_handle("input", file=file, io_paradigm=posix, comm=world)
    other = of.io_handle("input again", file=file, io_paradigm=posix, comm=world, parent=handle)
    line = of.source_code_location("work.c", 0x010203)
    context = of.calling_context(region, line, None)
    timer = of.interrupt_generator("timer", period=_BIG)
    callpath = of.callpath(None, region)
    of.callsite("work.c", 77, region, region)
    text, whole, natural = (
        of.parameter(str(kind), kind) for kind in (ParameterType.STRING, ParameterType.INT64, ParameterType.UINT64)
    )
    dimension = of.cart_dimension("x", 0x0102, CartPeriodicity.TRUE)
    of.cart_coordinate(of.cart_topology("grid", world, (dimension,)), 1, (0x0102,))
    of.paradigm(Paradigm.MPI, "MPI", ParadigmClass.PROCESS)
    of.paradigm_property(
        Paradigm.MPI, ParadigmProperty.COMM_NAME_TEMPLATE, Type.STRING, AttributeValue("c", Type.STRING)
    )
    of.metric_class_recorder(metric, archive.metric_locations[0])
    of.system_tree_node_domain(archive.system_node, SystemTreeDomain.SHARED_MEMORY)
    of.io_pre_created_handle_state(handle, IoAccessMode.READ_WRITE, IoStatusFlag.APPEND)
    for kind, value in _VALUES:
        given = kind, AttributeValue(value, kind)
        of.system_tree_node_property(archive.system_node, str(kind), *given)
        of.location_group_property(archive.processes[0], str(kind), *given)
        of.location_property(archive.threads[0], str(kind), *given)
        of.calling_context_property(context, str(kind), *given)
        of.io_file_property(file, str(kind), *given)
    of.callpath_parameter(callpath, natural, Type.UINT64, AttributeValue(_BIG, Type.UINT64))

    events = archive.events(archive.threads[0])
    now = _BIG
    done: list[str] = []

    def event(name: str, *values: Any, **more: Any) -> None:
        nonlocal now
        now += 1
        done.append(name)
        getattr(events, name)(now, *values, **more)

    event("program_begin", "./work", ["-n", "3"], attributes=attributes)
    event("measurement_on_off", MeasurementMode.ON)
    event("buffer_flush", _BIG << 1)
    event("enter", region, attributes=attributes)
    event("metric", metric, [_BIG, 0.375])
    for parameter, value, kind in ((text, "text", "string"), (whole, -_BIG, "int"), (natural, _BIG, "unsigned_int")):
        event(f"parameter_{kind}", parameter, value)
    for direction in ("send", "recv"):
        event(f"mpi_{direction}", 1, world, 0x0102, _BIG)
    event("mpi_isend", 1, world, 0x0102, _BIG, 5)
    event("mpi_isend_complete", 5)
    event("mpi_irecv_request", _BIG)
    event("mpi_irecv", 1, world, 0x0102, _BIG, _BIG)
    event("mpi_probe", 1, world, 0x0102, _BIG)
    event("mpi_mrecv", _BIG, 0x0102)
    event("mpi_imrecv_request", 0x0102, 6)
    event("mpi_imrecv", 0x0102, 6)
    event("mpi_request_test", _BIG)
    event("mpi_request_cancelled", _BIG)
    event("mpi_collective_begin")
    event("mpi_collective_end", CollectiveOp.ALLTOALL, world, 1, _BIG, 0x0102)
    event("non_blocking_collective_request", 9)
    event("non_blocking_collective_complete", CollectiveOp.BCAST, world, 1, _BIG, 0x0102, 9)
    event("comm_create", world)
    event("comm_destroy", world)
    event("omp_fork", 0x0102)
    event("omp_join")
    for what in ("acquire", "release"):
        event(f"omp_{what}_lock", 0x0102, 0x010203)
        event(f"thread_{what}_lock", Paradigm.PTHREAD, 0x0102, 0x010203)
    for what in ("create", "switch", "complete"):
        event(f"omp_task_{what}", _BIG)
        event(f"thread_task_{what}", world, 1, 0x0102)
    event("thread_fork", Paradigm.OPENMP, 0x0102)
    event("thread_join", Paradigm.OPENMP)
    for what in ("begin", "end"):
        event(f"thread_team_{what}", world)
    for what in ("create", "begin", "wait", "end"):
        event(f"thread_{what}", world, _BIG)
    event("rma_win_create", window)
    event("rma_collective_begin")
    event("rma_collective_end", CollectiveOp.ALLOCATE, RmaSyncLevel.MEMORY, window, 1, _BIG, 0x0102)
    event("rma_group_sync", RmaSyncLevel.PROCESS, window, group)
    for what in ("request", "acquire", "try"):
        event(f"rma_{what}_lock", window, 1, _BIG, LockType.SHARED)
    event("rma_release_lock", window, 1, _BIG)
    event("rma_sync", window, 1, RmaSyncType.NOTIFY_OUT)
    event("rma_wait_change", window)
    event("rma_put", window, 1, _BIG, 11)
    event("rma_op_complete_blocking", window, 11)
    event("rma_get", window, 1, _BIG, 12)
    event("rma_op_test", window, 12)
    event("rma_op_complete_non_blocking", window, 12)
    event("rma_atomic", window, 1, RmaAtomicType.SWAP, _BIG, 0x0102, 13)
    event("rma_op_complete_remote", window, 13)
    event("rma_win_destroy", window)
    event("calling_context_enter", context, 1)
    event("calling_context_sample", context, 0x0102, timer)
    event("calling_context_leave", context)
    event("io_create_handle", handle, IoAccessMode.READ_WRITE, IoCreationFlag.UNIQUE, IoStatusFlag.APPEND)
    event("io_duplicate_handle", handle, other, IoStatusFlag.APPEND)
    event("io_seek", handle, -_BIG, IoSeekOption.FROM_END, _BIG)
    event("io_change_status_flags", handle, IoStatusFlag.APPEND)
    event("io_operation_begin", handle, IoOperationMode.WRITE, IoOperationFlag.COLLECTIVE, _BIG, 21)
    for what in ("test", "issued", "cancelled"):
        event(f"io_operation_{what}", handle, 21)
    event("io_operation_complete", handle, _BIG, 21)
    for what in ("acquire", "try", "release"):
        event(f"io_{what}_lock", handle, LockType.SHARED)
    event("io_destroy_handle", handle)
    event("io_delete_file", posix, file)
    event("leave", region)
    event("program_end", -_BIG)
    known = {name for name in vars(type(events)) if not name.startswith("_")} - {"close", "write", "handle"}
    assert set(done) == known, known.symmetric_difference(done)

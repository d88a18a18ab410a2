# Written by ./dev gen from src/strobe/analyses: do not edit.
from typing import Literal

from strobe.tables.table import Table

class Analyses:
    """The analyses as methods of Trace: `trace.kernels(by="stream")` is `trace.ask("kernels", by="stream")`."""

    def breakdown(
        self,
        *,
        by: Literal["rank", "class", "step"] = "rank",
    ) -> Table:
        """Where does the time of a step go on the host, by part and kind of work?

        Divide the steps of every rank by part (data, forward, backward, ...) and, in each part, by kind.

        Data last until the batch is at hand; the waiting in them is the kind `data_wait`. The kind of all
        other time is that of the innermost span of the main thread: communication (calls of MPI,
        collectives on the host), a call that waits for the GPU, another call of the GPU's interface, an
        operator; `host` is all else: functions of the program and of libraries, and time outside of all
        spans. So the kinds of a part add up to it, and the parts to the step, to the nanosecond, in every
        step. The recorder adds them up when a step ends: they are exact of all steps of a run, kept or
        folded. Rows of ranks and classes are means over all steps that are complete and not part of the
        warm-up. Kinds are null where an older strobe folded steps without them.

        Options:
            by: Rows per rank, per rank and class (means of their steps), or per step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that runs the steps
            step (int64): number of the step in its process [by=step]
            class (string): class of the steps [by=class or step]
            steps (int64): steps of the run that the row is a mean over [by=rank or class]
            part (string): part of the step; `step`: all of it
            duration_ns (int64, ns): how long it takes
            share (float64): the same as a part of the step, 0 to 1
            communication_ns (int64, ns): of it, in calls of MPI, and in collectives on the host
            gpu_wait_ns (int64, ns): of it, in calls that wait for the GPU
            gpu_call_ns (int64, ns): of it, in other calls of CUDA or HIP: launches, copies, memory
            operators_ns (int64, ns): of it, in operators, of PyTorch or a library
            data_wait_ns (int64, ns): of it, waiting for the next batch, in a loader or in what makes
                batches for the loop
            host_ns (int64, ns): of it, in functions of the program and of libraries, and time outside of
                all spans

        Raises:
            UsageError: where an option has no such choice.
        """

    def calls(
        self,
        *,
        by: Literal["name", "thread"] = "name",
    ) -> Table:
        """Which calls of CUDA, HIP, OpenCL or OpenACC take the time of the host?

        Sum the calls of the runtime and the driver of CUDA or HIP, of every process; by name, or by name
        and thread.

        share = total / total of all calls of the process (Nsight Systems, cuda_api_sum); a driver's call
        inside a runtime's counts in both. stddev is that of a sample, 0 for one call. A call that waits
        lasts until the GPU, or a part of its work, is done: kernels that ran meanwhile are in its time.
        Calls of folded steps count, with medians that are estimates; of a profile (a summary of nvprof),
        medians and deviations are unknown.

        Options:
            by: One row per function, or per function and thread.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that called
            name (string): function that was called
            thread (string): thread that called [by=thread]
            waits (bool): whether it waits for the GPU, or asks whether it is done
            share (float64): part of the time of all calls of the process, 0 to 1
            total_ns (int64, ns): sum of the durations
            calls (int64): executions
            avg_ns (float64, ns): mean duration
            median_ns (float64, ns): median duration
            min_ns (int64, ns): shortest
            max_ns (int64, ns): longest
            stddev_ns (float64, ns): standard deviation of the durations
            library (string): CUDA runtime or driver, where the file has it

        Raises:
            UsageError: where an option has no such choice.
        """

    def clusters(
        self,
        *,
        by: Literal["cluster", "function", "rank"] = "cluster",
    ) -> Table:
        """Which ranks behave alike, and what separates them from the others?

        A profile is how a rank spends its steady steps, also folded ones (the whole run, if no steps were
        found): the time of each function without what it calls, in all of the rank's threads and streams,
        as a part of all of it; `outside of calls` is the time of the main thread in none of the recorded
        calls. Distance: the quadratic mean of the Hellinger distances of two profiles by function and by
        group of functions, 0 to 1. Functions that have less than 1 % in every rank count as one.

        Ranks whose roles differ are in different clusters: a role is in which collectives a rank takes
        part, and to and from whom it sends messages, counted from itself (modulo the number of ranks), at
        least once a step. With more than 16 roles, these are not looked at. Ranks of a role are joined by
        average linkage, up to the largest gap in the distances of what is joined, if the mean silhouette is
        0.25 or more; else they are one cluster. Distances below 0.05 separate nothing. Of more than 2000
        different profiles, every n-th is joined in this way; the others belong to the nearest medoid
        (mini-batch k-medoids). Nothing is random.

        The medoid is the rank of a cluster that is nearest to all others, the worst rank the one that is
        farthest from it. Outliers are farther than the median by more than 6 median absolute deviations.
        Functions separate a cluster by the difference of their mean shares inside and outside, divided by
        the pooled median absolute deviation.

        Options:
            by: One row per cluster, separating function, or rank.

        Columns:
            rank (int64): rank of the process, null if it has none [by=rank]
            cluster (int64): number of the cluster, 0 is the largest
            size (int64): ranks in it [by=cluster]
            medoid_rank (int64): the rank that is nearest to all others of it [by=cluster]
            worst_rank (int64): the rank that is farthest from the medoid [by=cluster]
            function (string): the function that separates it most, null of a single cluster [by=cluster or
                function]
            inside_ns (float64, ns): mean time of it on the ranks inside [by=cluster or function]
            outside_ns (float64, ns): mean time of it on all other ranks [by=cluster or function]
            inside_share (float64): mean part of the time inside [by=cluster or function]
            outside_share (float64): mean part of the time on all other ranks [by=cluster or function]
            outliers (string): ranks that are far from the medoid, the farthest first [by=cluster]
            role (string): with whom its ranks communicate once a step [by=cluster]
            distance (float64): to the medoid [by=rank]
            outlier (bool): whether it is an outlier [by=rank]

        Raises:
            UsageError: where an option has no such choice.
        """

    def collectives(
        self,
        *,
        rank: int | None = None,
    ) -> Table:
        """What do collectives move in each process group, and how fast?

        Sum the collectives of every rank by group, kind and type of elements: times, bytes, bandwidths.

        A collective takes from the start to the end of its kernel (NCCL, RCCL), call (MPI) or execution on
        a thread of its own (gloo), or from its request to its completion (MPI, not blocking). That includes
        waiting for ranks that come later: bandwidths are what the program saw, and the peak, of the fastest
        single collective, is nearer to what the network can do. In a recording, the call of NCCL that
        launched a kernel has the number of bytes; calls of a group (ncclGroupStart) are one execution,
        whose bytes add up. Where NCCL's kernels are not recorded, its calls are shown, with their bytes:
        their time is that of handing over to the GPU.

        in, out = elements times the size of their type (PyTorch), or bytes sent to all and received from
        all (MPI, as Score-P counts). size: as nccl-tests defines it (doc/PERFORMANCE.md): the buffer of an
        all-reduce, broadcast or reduce, all ranks' parts of an all-gather, reduce-scatter or all-to-all.
        algbw = size / time, of those whose size is known (1 GB/s is a byte per ns). busbw = algbw *
        2(n-1)/n for an all-reduce, (n-1)/n for all-gather, reduce-scatter, all-to-all, gather and scatter,
        1 for broadcast, reduce, send and receive; n is the size of the group. Of MPI, what is done in place
        comes out too low by (n-1)/n.

        Options:
            rank: Only this rank.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that took part
            device (int64): number of its GPU, null on the host or where unknown
            group (string): name of the process group or communicator, null where unknown
            description (string): what the group is for
            group_ranks (string): ranks of the group, as JSON
            group_size (int64): ranks in the group (n), null where unknown
            collective (string): its kind: allreduce, allgather, ...; null where unknown
            dtype (string): type of an element, null where unknown
            total_ns (int64, ns): sum of the times
            calls (int64): executions
            avg_ns (float64, ns): mean time
            median_ns (float64, ns): median time
            min_ns (int64, ns): shortest
            max_ns (int64, ns): longest
            stddev_ns (float64, ns): standard deviation of the times
            in_bytes (int64, bytes): bytes that the rank put in; null where not known of any
            out_bytes (int64, bytes): bytes that the rank got out; null where not known of any
            size_bytes (int64, bytes): sum of the sizes that bandwidths are made of
            algbw_gb_s (float64, GB/s): bandwidth of the algorithm: size by time
            busbw_gb_s (float64, GB/s): the same times the factor of nccl-tests: what each link carries
            peak_busbw_gb_s (float64, GB/s): the same of the fastest collective

        Raises:
            UsageError: where the trace has no such rank.
        """

    def compare(
        self,
        *,
        other: str | None = None,
        ranks: str | None = None,
        classes: str | None = None,
        steps: str | None = None,
        by: Literal["change", "place"] = "change",
    ) -> Table:
        """What does B do otherwise than A in a step, and what does each difference cost?

        Steps are compared by class. What a step does is a tree: functions, operators, calls of MPI and of
        the GPU's interface by the calls around them, and kernels below the operators that launched them.
        Names count without addresses, hashes, arguments of templates, and numbers of modules. Nodes of
        equal names below aligned ones are the same; else a level that one side has more is looked through;
        else what stands beside the same neighbours, is called as often and calls the same was renamed.
        Kernels that an operator has left on both sides are the same work, fused differently.

        Rows are the changes of a class and a lane, the largest difference first, and what is left as one
        row without a change. Over the rows of a lane, differences add up to that of its mean step: `host`
        is the thread of the loop, `threads` are all others, `GPU` is the lane of `strobe overlap --by lane`
        (of steps in detail) for each GPU, in which `several at once` takes away what kernels on several
        streams count twice. The lane `steps` is there where classes have another share of the steps: its
        rows add up to the difference of the mean of all steps.

        A change of counts holds all that is called because of it, as often per call as before. by_count_ns
        is what comes from the number of calls, at the mean time of a call of both sides; by_time_ns is the
        rest. Counts are exact where steps are alike. A time is `longer` or `shorter` if the steps of A and
        B are apart but for a tenth of either, by 1 % of the step at least, and by another factor than all
        else (4 robust standard deviations). What makes everything longer may be the machine: that is the
        business of `strobe bench`.

        Options:
            other: B: path of a trace, last~1; on a server the name of a run. Default: A.
            ranks: Rank of A and of B, with a comma between them; one stands for both: 0,1.
            classes: Class of steps of A and of B, with a comma between them; one stands for both:
                train,train+validation.
            steps: Steps of A and of B, with a comma between them; one stands for both: 10..20,30..40.
                Default: steady ones.
            by: Rows per change, or per place in the step, changed or not.

        Columns:
            class (string): class of the steps
            lane (string): steps, host, threads, GPU
            name (string): function, operator, call or kernel; `A -> B` where names differ
            change (string): only in A, only in B, more calls, fewer calls, renamed, reordered, fused
                differently, longer, shorter; null: no change beyond the spread
            a_calls (float64): calls per step in A; of the lane `steps` the share of the steps
            b_calls (float64): the same in B
            a_ns (float64, ns): time per step in A, without inner calls that have a row of their own
            b_ns (float64, ns): the same in B
            difference_ns (float64, ns): by how much B takes longer
            by_count_ns (float64, ns): the part of it that comes from the number of calls
            by_time_ns (float64, ns): the part of it that comes from the time of a call
            where (string): the calls around it, the outermost first

        Raises:
            UsageError: where B is neither another trace nor another part of A; or where a trace has no such
                rank, class or step; or where an option has no such choice.
        """

    def compile(
        self,
        *,
        by: Literal["function", "compilation", "event", "kernel", "line", "phase"] = "function",
    ) -> Table:
        """What does torch.compile compile, how often and why, and which lines do its kernels work for?

        Sum up the compilations of the whole run. A function is compiled to one graph, or with graph breaks
        to several: what follows a break is a frame of its own, and counts as the function that breaks off.
        `recompiles` and `graph_breaks` are those that TORCH_LOGS=recompiles,graph_breaks prints; a function
        that reaches the limit of recompiles is counted once more than it is compiled. `cause` is the most
        frequent one. A compilation is one of a frame, or of a backward graph: that has the number of its
        frame's compilation, and its guards.

        Of kernels, `source_lines` are those of the program's own files, or of its libraries, that the nodes
        of the graph come from, without PyTorch's. A kernel that fuses several lines counts for each of
        them: rows by line do not add up. Code that comes from Inductor's cache has no lines; `reason` is
        why they are not known. `size_bytes` is known of kernels of Triton in profiles with shapes: a tensor
        counts once for each call that gets it, whether it is read, written or both.

        Profiles of PyTorch have compiled regions and kernels, and no graph breaks: there a frame is a
        function, its graphs are those that were called, and recompiles those before the last of them. The
        kernels of GPUs are those that a compiled region launched. Phases have the time of threads in each
        phase, without the phases inside it: of the threads that wait for a compilation, not of those that
        compile C++ meanwhile.

        Options:
            by: What a row is of.

        Columns:
            rank (int64): rank of the process, null if it has none [by=function or compilation or event]
            process (uint32): process that compiled [by=function or compilation or event]
            event (string): compile, recompile, graph_break [by=event]
            time_ns (int64, ns): when it began [by=event]
            start_ns (int64, ns): when it began [by=compilation]
            step (int64): step that its middle lies in, null outside of every step [by=compilation]
            compile_id (string): PyTorch's number: frame/compilation [by=compilation or event]
            function (string): function that is compiled [by=function or compilation or event]
            again (bool): whether its frame had been compiled before [by=compilation]
            backward (bool): whether it is of a backward graph [by=compilation]
            kernel (string): kernel, or operator that the generated code calls [by=kernel]
            operators (string): ATen operators that it does the work of [by=kernel]
            source_lines (string): lines of the program that it works for [by=kernel]
            source_line (string): line of the program [by=line]
            kernels (int64): calls in the generated code that work for it [by=line]
            phase (string): phase of the compilation, by PyTorch's name [by=phase]
            graphs (int64): compilations that made a graph [by=function]
            recompiles (int64): times that a guard failed [by=function]
            graph_breaks (int64): times that tracing broke off; null: unknown [by=function]
            compile_ns (int64, ns): time of compiling it; null: unknown [by=function]
            calls (int64): calls [by=function or kernel or line or phase]
            total_ns (int64, ns): time of these calls [by=function or kernel or line]
            self_ns (int64, ns): time of it without phases inside it [by=phase]
            share (float64): of the time of all kernels of compiled code [by=kernel or line]
            size_bytes (int64, bytes): of the tensors that its calls get; null: unknown [by=kernel]
            duration_ns (int64, ns): of a compilation [by=compilation or event]
            run_share (float64): duration as a part of the run [by=compilation]
            causes (string): guards that failed, graph breaks, why it made no graph [by=compilation]
            cause (string): most frequent cause of recompiles or graph breaks [by=function]
            reason (string): guard that failed, cause of a break, why not compiled [by=event]
            place (string): FILE:LINE of the function, or of the break [by=function or compilation or event]
            region (string): compiled region that calls it: frame/compilation [by=kernel]
            graph (string): hash of its fx graph, as the profile has it [by=kernel]
            file (string): file of the generated code [by=kernel]
            line (int64): line of the call in it, null if unknown [by=kernel]
            shapes (string): shapes of what the operators make [by=kernel]
            reason (string): why its source lines are not known [by=kernel]

        Needs:
            code that torch.compile made

        Raises:
            UsageError: where an option has no such choice.
        """

    def copies(
        self,
        *,
        by: Literal["kind", "time"] = "kind",
        points: int = 500,
    ) -> Table:
        """What is copied to, from and on each GPU, and how fast?

        Sum the copies and memory sets of every GPU by direction and kinds of memory; sizes and times (nsys:
        mem_*_sum).

        share = total / total of all copies and sets of the GPU; stddev that of a sample, 0 for one.
        bandwidth = bytes / time of those whose size is known (1 GB/s is a byte per ns); the peak is the
        highest of a single copy. A copy is pageable where the host's memory is not pinned: the driver
        copies it twice, and it cannot overlap with the host.

        by time: the bandwidth of each kind in each of `points` equal parts of the time of the GPU's work,
        those in which something is copied; 0: from change to change, the sum of what runs at once (HTA:
        memory bandwidth time series). A copy counts as equally fast all along; those without length or size
        are left out.

        Options:
            by: One row per kind, or per kind and interval of time.
            points: Number of equal intervals of time (0: one row per change).

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            kind (string): from where to where: HtoD, DtoH, DtoD, PtoP, ...; set where memory was set
            source (string): memory copied from: Pageable, Pinned, Device, ..., null where unknown [by=kind]
            destination (string): memory copied to, or set [by=kind]
            pageable (bool): whether memory of the host took part that was not pinned, null where unknown
                [by=kind]
            share (float64): part of the time of all copies and sets of the GPU, 0 to 1 [by=kind]
            total_ns (int64, ns): sum of the durations [by=kind]
            calls (int64): copies or sets [by=kind]
            avg_ns (float64, ns): mean duration [by=kind]
            median_ns (float64, ns): median duration [by=kind]
            min_ns (int64, ns): shortest [by=kind]
            max_ns (int64, ns): longest [by=kind]
            stddev_ns (float64, ns): standard deviation of the durations [by=kind]
            size_bytes (int64, bytes): bytes copied or set; null where no size is known [by=kind]
            avg_size_bytes (float64, bytes): mean size [by=kind]
            median_size_bytes (float64, bytes): median size [by=kind]
            min_size_bytes (int64, bytes): smallest [by=kind]
            max_size_bytes (int64, bytes): largest [by=kind]
            stddev_size_bytes (float64, bytes): standard deviation of the sizes [by=kind]
            bandwidth_gb_s (float64, GB/s): bytes by time in it [by=kind]
            peak_gb_s (float64, GB/s): the same of the fastest copy [by=kind]
            start_ns (int64, ns): start of the part of time [by=time]
            duration_ns (int64, ns): its length [by=time]
            busy_ns (int64, ns): time of it in which something is copied [by=time]
            bandwidth_gb_s (float64, GB/s): bytes copied in it by its length [by=time]
            peak_gb_s (float64, GB/s): highest bandwidth at any moment of it, the sum of what runs at once
                [by=time]
            copies (int64): most that ran at once [by=time]

        Raises:
            UsageError: where `points` is above 1,000,000; or where an option has no such choice.
        """

    def cpu(
        self,
        *,
        by: Literal["run", "class", "part", "step"] = "run",
    ) -> Table:
        """What did cores and threads do: user, system, waiting, idle?

        Sum the time of the cores of each machine, of each process, of its groups of threads and of each
        recorded thread, over the run, by class of steps, by part of the step, or by step.

        The recorder reads what the kernel counts five times a second, more rarely where there are many
        threads. Readings of the machine are of all its cores, whoever used them: user, system, I/O wait,
        stolen and idle add up to cores x time. Of a process, user, system and idle (of the cores that it
        may use) add up to cores x time; its waits are the sum of those of its threads but strobe's, and
        beside them. Of a thread, all add up to the time: idle is when it neither ran nor waited for a core
        or a disk. What a thread did between the last reading and its end is in its process only. strobe's
        own threads are part of the process, and a group of their own.

        By class, part and step, a reading counts where at least 95 % of its time is of these steps. Where
        fewer than three readings do, there is no row: steps, or parts of them, of less than about a second
        have none, unless steps of the same kind follow each other. Parts are before the forward pass,
        forward and backward, and after them, as in `strobe step-trace`, of the steps that are in the trace
        in detail.

        Options:
            by: Rows over the whole run, per class of steps, per part of the step, or per step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that it is of, or that read the machine
            what (string): machine, process, threads (a group of them), thread
            name (string): of the machine, of the group, or of the thread
            location (uint32): location of a thread, null of all else
            step (int64): number of the step in its process [by=step]
            class (string): class of the steps [by=class or step]
            part (string): part of the step: interval, forward_backward, tail [by=part]
            readings (int64): readings in it
            duration_ns (int64, ns): time that these stand for
            covered (float64): the same as a part of the time of the steps, 0 to 1 [by=class or part or
                step]
            cores (float64): cores of the machine, or that the process may use; 1 of a thread
            user_ns (int64, ns): core-time: running code of programs, counted by the kernel in ticks of 10
                ms
            system_ns (int64, ns): core-time: in the kernel, counted by the kernel in ticks of 10 ms; of a
                machine, interrupts, too
            io_wait_ns (int64, ns): core-time: of a machine: idle while a disk was waited for; else: threads
                waited for a disk, null where the kernel does not count it
            waiting_ns (int64, ns): core-time: threads could run, and others had the cores; null of a
                machine
            stolen_ns (int64, ns): core-time: the virtual machine could run, and others had the hardware,
                counted by the kernel in ticks of 10 ms; null but of a machine
            idle_ns (int64, ns): core-time: cores had nothing to do; of a thread: it slept; null of groups
                of threads
            user_share (float64): user_ns as a part of cores x duration_ns, 0 to 1
            system_share (float64): system_ns as a part of cores x duration_ns, 0 to 1
            io_wait_share (float64): io_wait_ns as a part of cores x duration_ns, 0 to 1
            waiting_share (float64): waiting_ns as a part of cores x duration_ns, 0 to 1
            stolen_share (float64): stolen_ns as a part of cores x duration_ns, 0 to 1
            idle_share (float64): idle_ns as a part of cores x duration_ns, 0 to 1

        Needs:
            process metrics: strobe run --trace +metrics

        Raises:
            UsageError: where an option has no such choice.
        """

    def critical_path(
        self,
        *,
        by: Literal["kind", "region", "call", "location", "segment"] = "kind",
        rank: str = "all",
        step: str = "",
        what_if: str = "",
    ) -> Table:
        """What does the time of a step depend on, across threads, GPUs and ranks?

        Find the critical path of a step, and what bounds it: only making something on it faster makes the
        step faster.

        Moments are where spans of threads and work of GPUs begin and end. A moment waits for the one before
        it in its thread or stream; a kernel also for its launch and for events of other streams; a call
        that synchronises for the last work that it waits for; the main thread for the threads of autograd.
        The time until a moment belongs to what came last of all that it waited for. So the path is walked
        back from the last moment of the step, and its parts add up to its length. Without synchronisation
        events in the profile, a call is taken to wait for what ended last before it returned, and a kernel
        that begins more than 30 us after its launch and after the kernel before it for what ended last on
        any stream. Ranks are linked by collectives: where all wait for all (NCCL, MPI, gloo), for the last
        to come; of MPI, with a root all for it, or it for the last of them, in scans for the last of those
        before; what does not block is waited for in the call that completes it, until the last has asked
        for it. And by messages: a call that receives waits for the one that sends, and one that sends and
        blocks for the one that receives. Nothing links processes without ranks: the path is that of the one
        with most work on GPUs, else of the one that lasts longest, which the first line names; --rank each
        has a path for each.

        The step: by default a steady one of median length; without steps, the whole run (the middle of one
        of more than half a million spans). On threads its time, on GPUs what was launched in it. Kinds:
        host (Python, operators, calls), data (waiting for data), launch (from the launching call to the
        start), queue (between two kernels of a stream), computation, communication, copy, sync (from the
        end of what was waited for), unexplained (from the last that is known to come before, where nothing
        in the trace accounts for the time until a moment). What GPUs still do for earlier steps does not
        belong to a step: the first line has how long that was, and how much later than the step its last
        work ends. The parts of a whole run add up to it.

        Call paths (--by call, --by location) are those of the path, and all beside it. Their time without
        waits is own_ns; a launch has none. imbalance_ns: the time in the path less the mean over all
        threads of the time without waits; of kernels and copies the mean over the GPUs that run them; never
        below 0 (Scalasca's). Even work would make the path shorter by that. impact_ns: the time for which
        threads lacked work, charged to what the path did that they did not. slack_ns: the length of the
        path less that of the longest way through any part of it. If it takes longer by less than that,
        wherever, the end stays. What waits takes no time itself if another comes last; a collective takes
        what it took when all had come.

        --what-if multiplies the time of a kind, or of what runs in regions of a name, and finds the longest
        path anew.

        Options:
            by: One row per kind of work, region, call path, call path and thread or stream, or part of the
                path in order.
            rank: all: one path through all ranks; each: one per rank; or the number of a rank.
            step: Number of the step, as in strobe steps; or all, for the whole run.
            what_if: Predict the duration with other times of names or kinds: 'nccl*=0.5,launch=0'.

        Columns:
            rank (int64): rank, null where there is none or the path goes through all
            start_ns (int64, ns): when it began [by=segment]
            location (string): thread or stream [by=segment]
            region (string): what ran, or was waited in or for [by=region or segment]
            call_path (string): what ran, and what called it, a `<` between; null: waiting [by=call or
                location]
            location (string): thread or stream [by=location]
            kind (string): what bounds it: see above
            time_ns (int64, ns): its time in the path
            predicted_ns (int64, ns): its time in the path after the change [with what_if]
            own_ns (int64, ns): all its time in the window, without waits [by=call or location]
            imbalance_ns (int64, ns): its time in the path beyond the mean of all: see above [by=call or
                location]
            impact_ns (int64, ns): what threads lose together because they lack it: see above [by=call or
                location]
            slack_ns (int64, ns): how much longer it could take before the end moves [by=call or location]
            share (float64): its part of the path, 0 to 1 [by=call or location]
            location_id (uint32): number of the location [by=segment]
            row (int64): number of the span in its location, null between spans [by=segment]
            share (float64): its part of the path, 0 to 1 [by=kind or region]
            parts (int64): parts of the path that it is [by=kind or region]

        Raises:
            UsageError: where the trace has no such rank or step, or `what_if` is not a change of something
                in the path; or where an option has no such choice.
        """

    def data_pipeline(
        self,
        *,
        form: Literal["verdict", "stages"] = "verdict",
    ) -> Table:
        """Does training wait for its data, at which stage, and what would more workers gain?

        Judge the data pipeline of every rank that trains, or list its stages; means over all steps that are
        complete. Kept ones stand for those that are statistics only. A generator or an iterator of the
        program counts as a loader without workers.

        Verdict: `data processing` (batches are not ready), `data transmission` (they are, but do not reach
        the GPU in time), or `neither`. Where the queue between workers and loop is known (strobe recorded
        the workers) it is MindInsight's rule: processing if no batch is ready more than 30 % of the times
        that one is asked for, else transmission. Elsewhere the wait itself decides. Either counts only from
        5 % of the step on (torch-tb-profiler, XProf): an empty queue that costs nothing is not a
        bottleneck. `highly` is from 20 % on. The wait is exposed time: neither the GPU nor calls of its
        runtime have anything to do.

        Prediction: with enough workers, fetching is hidden behind the rest, `best_step_ns` = step - exposed
        wait: stages side by side run at the pace of the slowest, max(rest, fetch / workers). Workers also
        take cores and memory from the loop: two published pairs of profiles (ResNet-50 with 0 and 4
        workers, samples of torch-tb-profiler) gained 62 % and 34 % of that. So `predicted_step_ns` is
        half-way from the step to the best.

        Options:
            form: One row per rank, or per stage.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that trains
            verdict (string): data processing, data transmission, or neither [form=verdict]
            input_bound (string): not, moderately (5 % of the step), or highly (20 %) [form=verdict]
            duration_ns (int64, ns): how long a step takes [form=verdict]
            wait_ns (int64, ns): of it, waits for the next batch while nothing else happens [form=verdict]
            wait_share (float64): the same as a part of the step, 0 to 1 [form=verdict]
            copy_ns (int64, ns): of it, batches are copied to the GPU while that does not compute
                [form=verdict]
            copy_share (float64): the same as a part of the step, 0 to 1 [form=verdict]
            workers (int64): worker processes of the loader; 0: the loop fetches, null: not recorded
                [form=verdict]
            fetch_ns (int64, ns): work of all workers for the batches of a step, null where not recorded
                [form=verdict]
            worker_utilisation (float64): part of the workers' time that they fetch, 0 to 1 [form=verdict]
            batches (float64): batches a step asks for [form=verdict]
            asked (int64): batches that these steps asked for, null where the queue is unknown
                [form=verdict]
            empty (int64): how often none was ready then, null where the queue is unknown [form=verdict]
            needed_workers (int64): least number of workers that keep up, null where fetch is unknown
                [form=verdict]
            predicted_step_ns (int64, ns): expected duration of a step with enough workers [form=verdict]
            best_step_ns (int64, ns): duration if all fetching were hidden [form=verdict]
            predicted_gain (float64): part of the step that the prediction saves, 0 to 1 [form=verdict]
            advice (string): what to do about it [form=verdict]
            stage (string): fetch, queue, copy, compute, host: in the order that a batch meets them
                [form=stages]
            done_by (string): who does it [form=stages]
            time_ns (int64, ns): time it works in a step, all workers together; null where not recorded
                [form=stages]
            exposed_ns (int64, ns): part of the step that only it accounts for; adds up to the step
                [form=stages]
            share (float64): exposed_ns as a part of the step, 0 to 1 [form=stages]
            utilisation (float64): part of its time that it works (queue: that a batch was ready)
                [form=stages]
            bottleneck (bool): whether the step goes at the pace of this stage [form=stages]

        Raises:
            UsageError: where an option has no such choice.
        """

    def data_transforms(
        self,
        *,
        min_share: float = 0.001,
    ) -> Table:
        """Which transforms does the data loader spend its time in?

        List what batches are made of, each call before those inside it, the longest first.

        The trees begin with the fetch of a batch where the recorder saw it, else with `__getitem__` of a
        dataset below a wait for data, in whichever process or thread; calls of equal names at one place are
        summed up. share = total / total of all trees; self = total minus the time in calls inside. The
        functions inside need Python calls (`--trace +python`). Folded steps count.

        Options:
            min_share: Leave out calls with a smaller share of the time, 0 to 1.

        Columns:
            name (string): function
            depth (int64): number of calls around it in the tree
            calls (int64): executions
            total_ns (int64, ns): time in it and in what it calls
            self_ns (int64, ns): time in it alone
            share (float64): total as a part of that of all trees, 0 to 1
            avg_ns (float64, ns): mean duration of a call
            file (string): source file
            line (int64): line that it begins in, null where unknown

        Needs:
            spans: strobe run --preset auto
        """

    def delays(
        self,
        *,
        by: Literal["cause", "rank", "waiter", "step", "class", "all", "wait"] = "cause",
        among: Literal["all", "ranks", "gpus"] = "all",
    ) -> Table:
        """What made ranks wait, and what did it cost, directly and through the waits of others?

        Find the causes of waits: delay costs, by Scalasca's definitions (after Boehme et al., ACM TOPC
        3(2), 2016).

        A rank R waits for a rank S (see strobe waits). Both are compared from where they synchronised last:
        by a message for which either waited, by a collective (one with a root only with the root), by
        MPI_Init, else from the beginning of the run. Of the call that did it, only its completion counts:
        what it still did when the other side was done. What a call path took longer on S than on R, without
        waits, is a delay; what S waited itself passes the wait on. Both share the wait in proportion.
        direct_ns: the part of waits that is due to the cause itself. indirect_ns: the part in which the
        awaited rank waited, in a call that is the cause; it is a cost of what made that rank wait.
        long_term_ns: what others waited because of these waits, as far as the cause delayed them.
        unexplained_ns: what is due to nothing known. cost_ns = direct_ns + long_term_ns. cost_ns and
        unexplained_ns of all rows add up to all waits. Of each rank that waits, direct_ns, indirect_ns and
        unexplained_ns add up to its waits. A cost that is handed on to a wait of an unknown cause is in
        long_term_ns of the row without a cause.

        GPUs and their hosts (--among gpus): a thread waits for the work of a GPU (late_gpu), a stream for
        an event of another one (late_stream), a GPU for the thread that launches (late_host). Both sides
        are compared from where the host and the GPU of the process, or the two streams, waited for each
        other last, or since the first work of the GPU. Such a wait passes on what the late one waited for,
        also for another rank: long_term_ns of a wait for a rank has what GPUs and their hosts waited
        because of it. Waits for another rank (--among ranks) are due to what the whole process did: where
        the host waits for a GPU, it is what that does.

        A cause is the function that ran, with what called it. Between two calls of MPI in which nothing was
        recorded it is `computation before` the second one. Of steps that were folded, calls that wait are
        known, and the time before them: if either rank has only these, both are compared by them. Where a
        stream of a GPU is idle, it is what other streams of the GPU do, or else the main thread.

        Classes: computation (also the waiting rank runs the function: the load is out of balance),
        communication (calls that communicate), single (only the rank that is late runs it).

        Waits shorter than twice the error of the clocks are left out: strobe waits has their sum.

        Options:
            by: One row per cause and its rank, rank that was late, waiting rank, step, class, all of these,
                or single wait.
            among: Waits of ranks for each other, of GPUs and their hosts, or all.

        Columns:
            start_ns (int64, ns): when the call began that waited [by=wait]
            rank (int64): rank that was late [by=cause or rank or all or wait]
            cause (string): function that made it late, null: unknown [by=cause or all]
            class (string): computation, communication or single; null: unknown [by=cause or class or all]
            waiting_rank (int64): rank that waited [by=waiter or all or wait]
            state (string): what it waited for: see strobe waits [by=all or wait]
            step (int64): number of the step in its process [by=step or all or wait]
            wait_ns (int64, ns): how long it waited [by=wait]
            cost_ns (int64, ns): waits that are due to it: direct and long-term [by=cause or rank or waiter
                or step or class or all]
            direct_ns (int64, ns): waits for the late rank because of it
            indirect_ns (int64, ns): waits for the late rank because that waited itself
            long_term_ns (int64, ns): waits of others because of these waits [by=cause or rank or waiter or
                step or class or all]
            unexplained_ns (int64, ns): waits that are due to nothing known
            carried_ns (int64, ns): what others waited because of it [by=wait]
            waits (int64): waits that it is a cause of [by=cause or rank or waiter or step or class or all]
            waiting_ranks (int64): ranks that waited for the late one [by=cause or rank or waiter or step or
                class or all]
            call_path (string): the cause, and what called it, a `<` between [by=cause or all]
            location (uint32): where the wait was that cost most
            time_ns (int64, ns): when its call began

        Raises:
            UsageError: where an option has no such choice.
        """

    def devices(self) -> Table:
        """How busy, full and hot was each GPU, and how much energy did it take?

        Sum up the readings of every GPU of the nodes of the run, whoever used it: means and extremes of all
        readings.

        utilisation = part of the time in which some kernel ran; that fills the GPU only where SM activity
        and occupancy are high, too. throttled = part of the readings in which power, temperature or the
        board held the clocks down. energy = difference of the GPU's counter, else power summed over time;
        per step of those between first and last reading. Of imported files: the GPUs that worked, with the
        readings that the file has (Nsight Systems: GPU metrics).

        Columns:
            host (string): name of the machine
            device (int64): number of the GPU, as NVML counts (imported: as the file does)
            name (string): its model
            uuid (string): its own number, null where unknown
            process (uint32): process that its metrics are shown with
            utilisation_share (float64): mean part of the time in which a kernel ran, 0 to 1
            utilisation_max_share (float64): the highest reading of it
            memory_utilisation_share (float64): mean part in which memory was read or written
            sm_activity_share (float64): mean part of the multiprocessors that were busy (GPM)
            occupancy_share (float64): mean part of the warps that could be there (GPM)
            tensor_share (float64): mean part of the time of tensor operations (GPM)
            dram_share (float64): mean part of the memory's bandwidth (GPM)
            memory_peak_bytes (int64, bytes): most memory in use at a reading, of all processes
            memory_bytes (int64, bytes): memory that it has
            power_w (float64, W): mean power
            power_max_w (float64, W): highest power
            energy_j (float64, J): energy from the first to the last reading
            step_energy_j (float64, J): energy of a step on average; null without steps
            sm_clock_mhz (float64, MHz): mean clock of the multiprocessors
            memory_clock_mhz (float64, MHz): mean clock of the memory
            temperature_max_c (float64, °C): highest temperature
            throttled_share (float64): part of the readings in which its clocks were held down
            throttled_by (string): by what, the most frequent first; null if by nothing
            pcie_sent_gb_s (float64, GB/s): mean traffic from the GPU over PCIe
            pcie_received_gb_s (float64, GB/s): mean traffic to the GPU over PCIe
            nvlink_sent_gb_s (float64, GB/s): mean traffic from the GPU over NVLink
            nvlink_received_gb_s (float64, GB/s): mean traffic to the GPU over NVLink
            readings (int64): readings that this is made of; 0: only the GPU is known
        """

    def efficiency(
        self,
        *,
        by: Literal["run", "class", "step"] = "run",
        model: Literal["pop", "talp", "strobe"] = "pop",
    ) -> Table:
        """How efficiently do ranks and GPUs use their time, and which factor costs most?

        Explain an efficiency by its factors. A factor is the product of those that have it as `parent`, if
        there are any.

        Useful is the computation in the main thread of a rank. Communication, calls of the GPU's interface,
        and waits for the GPU or for data are not. The times are those of `strobe breakdown`: exact for all
        steps, also for folded ones. U = useful time of a rank, n = ranks, T = time of the rank that takes
        longest.

        pop (https://co-design.pop-coe.eu/metrics): parallel_efficiency = sum U / (n T) = load_balance *
        communication_efficiency. load_balance = mean U / max U = load_balance_in * load_balance_out: within
        nodes and between them. With N nodes and V = the most useful time of a node, these are N V / (n max
        U) and sum U / (N V). communication_efficiency = max U / T, where all that is not useful counts as
        communication, = serialisation_efficiency * transfer_efficiency. With I = how long the rank that
        takes longest would take on a network that transfers everything at once, these are max U / I and I /
        T. For I all messages and collectives of MPI and gloo are replayed: a rank computes as long as it
        did, and waits only for those that it needs. It is null where GPUs communicate, or where calls have
        no other side in the trace, or there are more than 20 million of them. POP calls 0.8 acceptable.

        talp (DLB, src/talp/perf_metrics.c, model 2; one CPU per rank and per further thread of OpenMP; TALP
        leaves ranks without any communication out of the minima): with m = mean time in communication,
        mpi_parallel_efficiency = (T - m) / T, mpi_communication_efficiency = (T - min m) / T,
        mpi_load_balance = (T - m) / (T - min m), and with v = the least mean of a node, (T - v) / (T - min
        m) within nodes and (T - m) / (T - v) between them. For TALP, waiting for data is useful: W = U +
        waits for data. With G = calls of the GPU's interface and waits for the GPU,
        device_offload_efficiency = W / (W + G), and parallel_efficiency = W / (W + G + communication),
        which is not the product of the others. With teams of OpenMP (null without), W also has the other
        threads in parallel regions, less their time in barriers. By region and over its threads, D is the
        sum of how much longer than the one that waits least each is in barriers, H of how long that one is;
        S is how long workers are outside of regions, but for MPI. With a = W + G + communication,
        omp_parallel_efficiency = a / (a + S + D + H) = omp_serialization_efficiency * omp_load_balance *
        omp_scheduling_efficiency, which are a / (a + S), (a + S) / (a + S + D), (a + S + D) / (a + S + D +
        H), as in TALP's model 1. parallel_efficiency = W / (a + S + D + H), and device_offload_efficiency
        has W + S + D + H for W. For g GPUs with K = time in kernels, M = in copies while no kernel runs:
        gpu_parallel_efficiency = sum K / (g T), gpu_load_balance = sum K / (g max K),
        gpu_communication_efficiency = max K / max (K + M), gpu_orchestration_efficiency = max (K + M) / T.
        A GPU that several ranks use counts once.

        strobe: more losses are told apart, and kernels that communicate are not useful. Each factor is a
        time divided by the one before it. Ranks: T, max (U + waits for data + G), max (U + waits for data),
        max U, mean U; the factors are communication, offload, data, load balance. GPUs: T, max (K + C + M),
        max (K + C - w + M), max (K + M), max K, mean K, where K = time in kernels that compute, C = in
        kernels that communicate while none computes, M = in copies while no kernel runs, w = the part of C
        from the start of a kernel until the last rank has arrived; the factors are orchestration, wait,
        transfer, copy, load balance. Column `talp`: TALP's factor of the same name.

        The run consists of the steps that are complete and past the warm-up on all ranks; if a rank has no
        steps, it is the whole run. The T of GPUs is that of their lanes (strobe overlap --by lane), if
        these are longer. A value is null if a rank is not in the trace, or lacks the step; those of GPUs
        also if there is no GPU.

        Several traces of one program are compared with the first, per step: computation_scaling = sum U of
        the first / sum U, global_efficiency = parallel_efficiency * computation_scaling, speedup = T of the
        first / T, speedup_efficiency = speedup * n of the first / n. With --weak the work of a step grows
        with the ranks: computation_scaling and speedup are multiplied by n / n of the first. If counters of
        instructions and cycles were read at each call (Score-P with PAPI), computation_scaling =
        instruction_scaling * ipc_scaling * frequency_scaling: with I instructions and C cycles of the
        computation on all ranks, I of the first / I, I / C and C / sum U, each divided by that of the
        first.

        Options:
            by: Factors of the run, of each class of steps, or of each step.
            model: Whose factors.

        Columns:
            step (int64): number of the step in its process [by=step]
            class (string): class of the steps, on all ranks [by=class or step]
            ranks (int64): ranks that have all of it
            steps (int64): steps of the run that it is of, null without steps [by=run or class]
            elapsed_ns (int64, ns): how long they take, T
            parent (string): the factor that this one is a factor of, null at the root
            factor (string): name of the factor, see above
            value (float64): 1: nothing is lost; null where it is not known
            talp (float64): TALP's value of the factor of the same name [model=strobe]

        Raises:
            UsageError: where an option has no such choice.
        """

    def flow_graph(
        self,
        *,
        by: Literal["process", "step"] = "process",
    ) -> Table:
        """How regular is the program: how small is its flow graph, and from which step on is it stable?

        List the processes, or with `by=step` the steps of all of them.

        A node is a kind of event, an edge a transition between two (Aguilar, Fürlinger, Laure: MPI Trace
        Compression Using Event Flow Graphs, Euro-Par 2014). The events are those that the step was found
        in; of operators only those that no other one called. chains: nodes after what only follows each
        other is drawn as one. sequence_bytes: the order of the events as numbers of 1, 2 or 4 bytes;
        graph_bytes: the graph and, in its edges, the same order. compression = sequence_bytes /
        graph_bytes. stable_from: the first step after which no step adds a node; null: the last step still
        does. A path is the sequence of events of a step. Steps that were folded into statistics have no
        events here.

        Options:
            by: One row per process, or per step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): number of the process
            stream (string): which events: calls, operators, kernels, mpi, loops [by=process]
            events (int64): events [by=process]
            nodes (int64): kinds of events [by=process]
            edges (int64): transitions between them [by=process]
            chains (int64): nodes after chains are drawn as one [by=process]
            loops (int64): loops of the graph [by=process]
            events_per_node (float64): mean events of a node [by=process]
            sequence_bytes (int64, bytes): size of the order of the events [by=process]
            graph_bytes (int64, bytes): size of the graph with the order [by=process]
            compression (float64): sequence_bytes / graph_bytes [by=process]
            paths (int64): different sequences of events of its steps [by=process]
            stable_from (int64): first step from which on no node is new, null: none [by=process]
            step (int64): number of the step in its process [by=step]
            events (int64): events of the step [by=step]
            new_nodes (int64): kinds of events that no step before had [by=step]
            nodes (int64): kinds of events up to its end [by=step]
            new_path (bool): no step before had the same sequence of events [by=step]
            paths (int64): different sequences up to its end [by=step]

        Needs:
            spans: strobe run --preset auto

        Raises:
            UsageError: where an option has no such choice.
        """

    def gemm(
        self,
        *,
        peak_gflops: float | None = None,
        bandwidth_gb_s: float | None = None,
    ) -> Table:
        """How fast are matrix products, convolutions and attention, and how close to what the GPU can do?

        Sum matrix products, convolutions and attention by operator, shape and type; all ranks and all their
        GPUs.

        Of operators inside each other (linear, addmm) the outermost counts. FLOPs follow from the shapes: a
        product of (m, k) and (k, n) takes 2 m n k (formulas: `strobe.operators.flops`); bytes are those of
        the operands and the result, each once. device_ns = sum of the durations of the kernels launched
        inside. gflops = FLOPs / device_ns, or / host_ns where the process used no GPU. efficiency = gflops
        / peak of the type; it may exceed 1 where a convolution multiplies less than its definition
        (Winograd, FFT). bound: `compute` where FLOPs a byte (intensity) reach peak / bandwidth, else
        `memory`; of_roofline = gflops / min(peak, intensity x bandwidth). Peaks are as stated in the
        options, else those of the GPU's data sheet, where it is a known one; float32 is measured against
        TF32 where tensor cores computed it, by the names of the kernels.

        Options:
            peak_gflops: Peak performance of the GPU in GFLOP/s, for all types.
            bandwidth_gb_s: Memory bandwidth of the GPU in GB/s.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that called it
            device (int64): number of the GPU that computed it, null where no kernel is known
            operator (string): outermost operator
            dtype (string): type of the operands that were multiplied
            batch (int64): matrix products of a call; groups of a convolution, heads in all of attention
            m (int64): rows; positions of a convolution's output in all images; queries
            n (int64): columns; output channels of a group; keys
            k (int64): length of the sums; elements of a filter; size of a head
            calls (int64): executions; of what a CUDA graph holds, how often the graph ran it
            flop (int64, FLOP): floating-point operations of a call
            moved_bytes (int64, bytes): operands and result of a call, each once
            intensity (float64, FLOP/byte): floating-point operations a byte
            device_ns (int64, ns): durations of the kernels launched inside, of all calls
            host_ns (int64, ns): durations of the operators on the host, of all calls
            avg_ns (float64, ns): kernels of a call (operator, without a GPU), mean
            gflops (float64, GFLOP/s): speed that was reached
            peak_gflops (float64, GFLOP/s): what the GPU does at most with this type
            efficiency (float64): speed as a part of the peak, 0 to 1
            bound (string): what limits it at best: compute or memory
            of_roofline (float64): speed as a part of what peak and bandwidth allow, 0 to 1
            tf32 (bool): whether float32 was multiplied on tensor cores, by names of kernels
            shapes (string): shapes of the inputs, as JSON

        Raises:
            UsageError: where a peak or a bandwidth is not above 0.
        """

    def gemm_merging(
        self,
        *,
        peak_gflops: float | None = None,
        bandwidth_gb_s: float | None = None,
    ) -> Table:
        """Which matrix products could be merged into one, and what would that gain?

        Find products of equal operator, shape and type that one thread calls one after the other in the
        same step.

        No other operator launches a kernel between them, so n of them may be one product of n-fold work:
        operands put after each other ([A1; A2; A3] h), or stacked (bmm). A trace does not hold which data
        an operator reads: that they share an operand is to be checked in the program, and so is that none
        needs the result of another. `independent` is `by size` where a result has as many elements as
        neither operand, so that it cannot be the next one's as a whole (a part of it still can), else
        `unknown`.

        predicted_ns = n-fold FLOPs / speed; speed = that of the products of the same type in this trace, on
        the same GPU, which take half to twice as many FLOPs a call (`basis`: trace); where there are none,
        or that is more than the roofline allows, min(peak, intensity of the merged product x bandwidth),
        which is the best case (`basis`: roofline). gain_ns = device_ns - predicted_ns; products for which
        that is not above 0 have no row.

        Options:
            peak_gflops: Peak performance of the GPU in GFLOP/s, for all types.
            bandwidth_gb_s: Memory bandwidth of the GPU in GB/s.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that called them
            device (int64): number of the GPU
            operator (string): operator
            dtype (string): type of the operands that are multiplied
            batch (int64): matrix products of a call
            m (int64): rows of each
            n (int64): columns of each
            k (int64): length of the sums of each
            together (int64): calls one after the other, which could be one
            times (int64): how often so many follow each other
            device_ns (int64, ns): durations of their kernels, all times
            predicted_ns (int64, ns): the same after merging, null where nothing to predict it from is known
            gain_ns (int64, ns): what merging would save, all times
            speedup (float64): device_ns / predicted_ns
            basis (string): what the prediction rests on: trace, or roofline (the best case)
            independent (string): by size: none as a whole can be an operand of the next; else unknown
            inside (string): what directly surrounds the first, empty where nothing does
            shapes (string): shapes of the inputs of each, as JSON
            location (uint32): thread of the first of them
            start_ns (int64, ns): when the first of them was called

        Raises:
            UsageError: where a peak or a bandwidth is not above 0.
        """

    def gpu_trace(
        self,
        *,
        limit: int = 1000000,
    ) -> Table:
        """What ran on the GPUs, kernel by kernel and copy by copy?

        List what ran on every GPU: nvprof's `--print-gpu-trace`, Nsight Systems' `cuda_gpu_trace`.

        The first `limit` activities of each GPU (0: all); a row takes about 150 bytes of memory. grid and
        block are X x Y x Z; what a file does not hold is null. throughput is that of the file, else size /
        duration (1 GB/s is a byte per ns). Raises UsageError where `limit` is negative.

        Options:
            limit: Show at most the first N activities of each GPU (0: all).

        Columns:
            rank (int64): rank of the process, null where it has none
            start_ns (int64, ns): when it began
            duration_ns (int64, ns): how long it ran
            grid (string): blocks in x, y and z
            block (string): threads of a block in x, y and z
            registers_per_thread (int64): registers per thread
            static_shared_bytes (int64, bytes): shared memory of a block that the code declares
            dynamic_shared_bytes (int64, bytes): shared memory of a block that the launch asked
            shared_memory_bytes (int64, bytes): shared memory of a block, static and dynamic
            size_bytes (int64, bytes): bytes copied or set
            throughput_gb_s (float64, GB/s): bytes by time in it
            source (string): memory copied from: Pageable, Pinned, Device, ...
            destination (string): memory copied to, or set
            device (int64): number of the GPU, null if unknown
            context (int64): context of the driver
            stream (int64): stream
            name (string): full name of the kernel, or what was copied or set
            correlation (int64): number that the call shares which launched it
            process (uint32): process that used the GPU
            location (uint32): where it ran
            row (int64): number of its span in that location

        Raises:
            UsageError: where `limit` is below 0.
        """

    def idle(
        self,
        *,
        by: Literal["device", "stream"] = "device",
        kernel_gap_ns: int = 30000,
    ) -> Table:
        """Why do the GPUs have nothing to do?

        Sum the gaps between activities of every GPU (or stream) by what kept the next activity from
        starting.

        data, sync, copy, host: it was launched only after the gap had begun; until then the launching
        thread waited for data (`data`), for the GPU (`sync`), in a copy that blocks it (`copy`), or did
        something else (`host`, with the time from the launch to the start). kernel: it was launched before,
        and began less than `kernel_gap_ns` after the one before it. other: it was launched before and
        waited longer (for another stream, mostly), or its launch is unknown. The sum of the first four is
        the `host_wait` of Holistic Trace Analysis, kernel its `kernel_wait`, other its `other`, without its
        rounding to microseconds.

        Where steps were folded, gaps count as often as steps stand for those of their class, and the sum of
        a GPU's causes is what is known of all steps.

        Options:
            by: Gaps of each GPU as a whole, or of each of its streams.
            kernel_gap_ns: Longest gap between two launched kernels that counts as the GPU's own. In ns.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            stream (string): stream of the GPU [by=stream]
            cause (string): data, sync, copy, host, kernel, other: see above
            idle_ns (int64, ns): time that this cause takes of the gaps
            share (float64): the same as a part of all idle time of the GPU (or stream), 0 to 1
            gaps (int64): gaps of which this cause takes most; of folded steps none
            longest_ns (int64, ns): the longest of these gaps
            start_ns (int64, ns): when that one began
            location (uint32): where the activity that ended it ran
            row (int64): number of that activity's span in its location

        Raises:
            UsageError: where an option has no such choice.
        """

    def io(
        self,
        *,
        by: Literal["file", "function", "rank"] = "file",
    ) -> Table:
        """Which files take the time, by which calls, and how fast are they?

        Sum the calls of the C library that `strobe run --trace +io` recorded, and MPI_File_*. Calls, bytes
        and times are exact for the whole run, whether steps were folded or not, also of a program that was
        killed.

        bytes = read + written, of calls that read or write: mmap has none, as what is read through a
        mapping is no call; bandwidth = these bytes / the time of the calls that moved them. Times of
        threads and ranks add up. A file has the name that the kernel has for it: absolute, without links.
        `pipe`, `socket` and others are not files: they have rows, but are not in the sentence. Programs
        that open thousands of files have them by folder (`/data/*`).

        What fprintf, fgets and others write and read inside of the C library is not seen, nor sendfile, nor
        the I/O of a program that makes system calls itself (Go, io_uring). Rows of the interface `mpi` are
        about MPI_File_*, whose files are not known; what the MPI library does for them with calls of the C
        library is in rows of `posix`, too.

        Options:
            by: What a row is of.

        Columns:
            interface (string): posix, or mpi
            rank (int64): rank of the process, null if it has none [by=rank]
            process (uint32): process [by=rank]
            file (string): path of the file; `pipe`, `socket`, ...; null where unknown [by=file]
            function (string): open, read, ... [by=file or function]
            calls (int64): calls
            bytes (int64, bytes): bytes read and written
            total_ns (int64, ns): time in these calls
            bandwidth_gb_s (float64, GB/s): bytes by the time of the calls that moved them, null: none
            max_ns (int64, ns): longest call
            read_bytes (int64, bytes): bytes read
            written_bytes (int64, bytes): bytes written

        Needs:
            I/O of files: strobe run --trace +io

        Raises:
            UsageError: where an option has no such choice.
        """

    def kernels(
        self,
        *,
        by: Literal["name", "shape", "stream", "operator", "function", "collective", "type"] = "name",
        per: Literal["run", "step"] = "run",
    ) -> Table:
        """Which kernels take the time of each GPU, and which of them should be improved first?

        Sum the kernels of every GPU by name, or by type; other values of `by` split names further.

        By launch shape, stream, operator (of XLA: `module/operation`, as the kernel names it), function of
        the program, or collective. The type is what the kernel computes as far as its name shows: matrix
        product, convolution, reduction, ... A kernel belongs to the step in which it was launched.

        share = total / total of all kernels of the GPU; cumulative share = the share of the row and of all
        rows of the GPU with a greater one; stddev that of a sample (0 for one call). launch delay = from
        the start of the launching call to the start of the kernel; queue time = from the end of that call
        to the start of the kernel, of those that start after it (Nsight Systems, cuda_kern_exec_sum).
        occupancy = mean of the estimates of PyTorch's profiler, theoretical occupancy = what registers,
        shared memory and block size allow (NVIDIA's calculator), SM efficiency = part of the
        multiprocessors that have a block: min(blocks / multiprocessors, 1); all weighted with durations.
        priority = total * (1 - occupancy), the highest in the table being 100 and none below 1: the longest
        kernels that fill the GPU least come first. Where no occupancy is estimated the theoretical one
        counts, and where none is known, time alone. measured_... = means of the hardware metrics that
        `strobe metrics --trace` kept beside the trace, of the kernel with the same full name in that other
        run. Kernels of folded steps count by name and stream, where their medians are estimates and all
        means but that of the duration are of the others; split further they do not.

        Options:
            by: One row per kernel name, split further, or per type.
            per: One row for the whole run, or per step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            step (int64): step in which they were launched, null outside of every step [per=step]
            kernel (string): name without result, name spaces, templates and arguments [by=name or shape or
                stream or operator or function or collective]
            type (string): what it computes, or communication; null where its name does not show it
                [by=type]
            grid (string): blocks of the launch [by=shape]
            block (string): threads of a block [by=shape]
            stream (string): stream that it ran on [by=stream]
            operator (string): innermost operator at its launch or graph capture [by=operator]
            function (string): innermost function at its launch or graph capture [by=function]
            collective (string): which collective it is [by=collective]
            dtype (string): type of its elements [by=collective]
            share (float64): part of the time of all kernels of the GPU, 0 to 1
            cumulative_share (float64): share of it and of all with a greater one, 0 to 1
            total_ns (int64, ns): sum of the durations
            calls (int64): executions
            avg_ns (float64, ns): mean duration
            measured_* (float64): mean of a hardware metric, in its unit (strobe metrics) [by=name or shape
                or stream or operator or function or collective]
            median_ns (float64, ns): median duration
            min_ns (int64, ns): shortest
            max_ns (int64, ns): longest
            stddev_ns (float64, ns): standard deviation of the durations
            launch_delay_avg_ns (float64, ns): mean from call's start to its own; null: unknown
            queue_avg_ns (float64, ns): mean from call's end to its start, of the `queued`
            queued (int64): kernels that start after the end of their call, null where unknown
            kind (string): computation or communication
            tensor_cores (bool): whether on tensor cores: as measured, else by name [by=name or shape or
                stream or operator or function or collective]
            occupancy (float64): estimated achieved occupancy, 0 to 1, null where unknown
            theoretical_occupancy (float64): occupancy that its launch allows at most, 0 to 1
            sm_efficiency (float64): estimated part of the multiprocessors at work, 0 to 1
            name (string): full name [by=name or shape or stream or operator or function or collective]
            type (string): what it computes, or communication; null where its name does not show it [by=name
                or shape or stream or operator or function or collective]
            priority (int64): 100 (improve this first) to 1

        Raises:
            UsageError: where an option has no such choice.
        """

    def launches(
        self,
        *,
        by: Literal["kernel", "stream"] = "kernel",
        long_call_us: int = 50,
        full_queue: int = 1024,
        late_us: int = 100,
    ) -> Table:
        """How long do kernels wait from their call to their end, and are enough of them queued?

        Sum the executions of kernels, copies and sets of every GPU by name and call (Nsight Systems:
        kern_exec_sum).

        all = from the start of the launching call to the end on the GPU, which is less than the sum of its
        parts where the GPU begins before the call returns; queue = from the end of the call to the start on
        the GPU, of the `queued` ones that start after it. short = shorter than its call, where that is not
        a long one; long calls = those of more than `long_call_us`; late = queue time above `late_us` (HTA:
        launch statistics). Only what has a call in the trace.

        by stream: how many launches wait, looked at after each event: one more at the start of a call, one
        less at the start of what it launched (HTA: queue length). An empty queue means that the GPU waits
        for the host; while `full_queue` launches wait, the host does: the next call does not return (HTA:
        time blocked on a full queue).

        Options:
            by: One row per kernel and call, or the queue of each stream.
            long_call_us: Shortest duration of a long call. In us.
            full_queue: Number of waiting launches on a stream at which calls block.
            late_us: Shortest time in the queue of a late launch. In us.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            kernel (string): name without result, name spaces, templates and arguments [by=kernel]
            launches (int64): executions whose call is known [by=kernel]
            queued (int64): those that start on the GPU after the end of their call [by=kernel]
            short (int64): those that are shorter than their call, where that is not a long one [by=kernel]
            long_calls (int64): those whose call is longer than --long-call-us [by=kernel]
            late (int64): those that wait longer than --late-us [by=kernel]
            all_avg_ns (float64, ns): from the start of the call to the end on the GPU: avg [by=kernel]
            call_avg_ns (float64, ns): the call that launched it: avg [by=kernel]
            queue_avg_ns (float64, ns): from the end of the call to the start on the GPU, of those that
                start after it: avg [by=kernel]
            run_avg_ns (float64, ns): execution on the GPU: avg [by=kernel]
            all_median_ns (float64, ns): from the start of the call to the end on the GPU: median
                [by=kernel]
            call_median_ns (float64, ns): the call that launched it: median [by=kernel]
            queue_median_ns (float64, ns): from the end of the call to the start on the GPU, of those that
                start after it: median [by=kernel]
            run_median_ns (float64, ns): execution on the GPU: median [by=kernel]
            all_min_ns (int64, ns): from the start of the call to the end on the GPU: min [by=kernel]
            call_min_ns (int64, ns): the call that launched it: min [by=kernel]
            queue_min_ns (int64, ns): from the end of the call to the start on the GPU, of those that start
                after it: min [by=kernel]
            run_min_ns (int64, ns): execution on the GPU: min [by=kernel]
            all_max_ns (int64, ns): from the start of the call to the end on the GPU: max [by=kernel]
            call_max_ns (int64, ns): the call that launched it: max [by=kernel]
            queue_max_ns (int64, ns): from the end of the call to the start on the GPU, of those that start
                after it: max [by=kernel]
            run_max_ns (int64, ns): execution on the GPU: max [by=kernel]
            all_stddev_ns (float64, ns): from the start of the call to the end on the GPU: stddev
                [by=kernel]
            call_stddev_ns (float64, ns): the call that launched it: stddev [by=kernel]
            queue_stddev_ns (float64, ns): from the end of the call to the start on the GPU, of those that
                start after it: stddev [by=kernel]
            run_stddev_ns (float64, ns): execution on the GPU: stddev [by=kernel]
            call (string): function that launched it [by=kernel]
            name (string): full name [by=kernel]
            stream (string): stream [by=stream]
            launches (int64): executions whose call is known [by=stream]
            count (int64): how often the queue was looked at: twice a launch [by=stream]
            mean (float64): mean length of the queue [by=stream]
            stddev (float64): its standard deviation [by=stream]
            min (int64): shortest [by=stream]
            quarter (float64): a quarter are not longer [by=stream]
            median (float64): half are not longer [by=stream]
            three_quarters (float64): three quarters are not longer [by=stream]
            max (int64): longest; 1024 is where CUDA blocks the next call [by=stream]
            full_ns (int64, ns): time in which --full-queue launches or more waited [by=stream]

        Raises:
            UsageError: where an option has no such choice.
        """

    def lines(
        self,
        *,
        function: str | None = None,
        whole: bool = False,
    ) -> Table:
        """How often did each line of the chosen functions run, and how long did it take?

        Sum the counted lines over all threads and processes: functions by time, each in the order of its
        source.

        A line's time includes what it calls (line_profiler's definition); its share is of all lines of its
        function. So does its time on GPUs: the kernels, copies and sets whose launching call began while
        the line was being executed, on the same thread, in it or in what it calls, whenever they ran; of a
        CUDA graph those that were captured meanwhile, each time that they run. A recursion counts once.
        These are counted as they happen, in all iterations, whether kept in detail or not; what the
        backward pass launches on threads of its own belongs to no line, and after a kill about a second of
        what CUPTI had not delivered is missing. Null where no calls were recorded on threads (those beside
        them, where another tool has CUPTI's callbacks, belong to no line). Of an imported profile of
        samples, `hits` are samples and the time is the line's own. `function` is a name, or part of one.
        With `whole`, lines that never ran are listed, too, as long as the source file is there.

        Options:
            function: Only functions whose name contains this.
            whole: Include lines that never ran.

        Columns:
            file (string): source file
            line (int64): line in it
            function (string): function that the line is in
            hits (int64): how often it ran
            total_ns (int64, ns): time in it, with what it calls
            per_hit_ns (float64, ns): time of one execution, null where it never ran
            share (float64): part of the time of its function's lines, 0 to 1
            gpu_ns (int64, ns): time of GPUs in what it launched, null where unknown
            kernels (int64): kernels that it launched
            source (string): its text, null where the file is not here, or was changed since the run

        Needs:
            source lines: strobe run --lines FUNCTION
        """

    def loops(self) -> Table:
        """Which loops dominate the run, one after the other?

        List the loops whose iterations are the steps, by process and in order of time; see schema `loops`.

        Columns:
            process (uint32): process that runs the loop
            loop (uint32): number of the loop in its process, in order of time
            kind (string): what marks a step: hint, range, optimizer, zero_grad, data_wait, structure
            name (string): region that marks a step
            steps (int64): steps of the loop
            kept_steps (int64): steps whose spans are in the trace; statistics hold the others
            start_ns (int64, ns): when its first step begins
            end_ns (int64, ns): when its last step ends
            accepted_step (int64): first step after the loop was found during the run, or null
            confidence (string): how sure we are that this is the loop that matters: high, medium, low
            reason (string): how it was found

        Needs:
            spans: strobe run --preset auto
        """

    def memory(
        self,
        *,
        by: Literal["device", "step", "time", "category"] = "device",
        points: int = 500,
    ) -> Table:
        """How much memory of GPUs and of the host is in use, when is it most, and in which step?

        Show how much memory is in use: at most, in each step, or over time; by process, GPU and kind of
        memory, or category.

        `memory`: GPU and host are what PyTorch's allocators give out; Device, Managed, Pinned, ... are
        allocations of CUDA (`--trace +cuda+memory`, Nsight Systems), where reserved counts what pools hold;
        resident is the memory of the whole process. allocated = in use; reserved = what the allocator holds
        for that. Where a trace has sizes only, allocated counts from the first event on: it was at least
        that much (`exact` is false). by step: from the start of a step to its end, with what was in use
        when it began. by time: a row is what was in use from then on; the highest of each of `points` equal
        parts of the time, 0: every change. largest_free is the largest free piece of what is reserved: an
        allocation that is larger needs more memory from the GPU, however much is free in all. by category:
        at the same moments, a row for each category that PyTorch's memory profiler has, `workspace`, and
        `cache` (reserved, but not active). Files of PyTorch have categories, or the stacks or operators
        that allocated: then it follows from these, and from what outlives its pass. `unknown` is what
        nothing is known of.

        Options:
            by: One row per kind of memory, per step, or its curve over time, in all or by category.
            points: Most rows of a curve, each the maximum of an interval (0: all).

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process
            device (int64): number of the GPU, null for the host
            memory (string): kind of memory: GPU, host, Device, Managed, Pinned, ..., resident
            peak_bytes (int64, bytes): most that was in use at once [by=device]
            peak_time_ns (int64, ns): when it was, for the first time [by=device]
            peak_step (int64): step of its process at that time, null outside of all [by=device]
            peak_share (float64): the same as part of the GPU's memory, 0 to 1, null where unknown
                [by=device]
            peak_reserved_bytes (int64, bytes): most that the allocator held, null where unknown [by=device]
            first_bytes (int64, bytes): in use before the first event [by=device]
            last_bytes (int64, bytes): in use after the last one [by=device]
            allocations (int64): how often memory was allocated [by=device]
            allocated_bytes (int64, bytes): sum of what was allocated [by=device]
            freed_bytes (int64, bytes): sum of what was freed [by=device]
            exact (bool): whether the allocator reported the amount in use; false: at least that [by=device]
            location (uint32): thread that allocated the peak, null where unknown [by=device]
            step (int64): number of the step in its process [by=step]
            start_bytes (int64, bytes): in use when it began [by=step]
            peak_bytes (int64, bytes): most that was in use at once [by=step]
            peak_time_ns (int64, ns): when it was, for the first time [by=step]
            peak_reserved_bytes (int64, bytes): most that the allocator held, null where unknown [by=step]
            end_bytes (int64, bytes): in use when it ended [by=step]
            allocations (int64): how often memory was allocated [by=step]
            allocated_bytes (int64, bytes): sum of what was allocated [by=step]
            freed_bytes (int64, bytes): sum of what was freed [by=step]
            step (int64): step of its process at that time, null outside of all [by=time]
            time_ns (int64, ns): when [by=time]
            allocated_bytes (int64, bytes): in use from then on [by=time]
            reserved_bytes (int64, bytes): held by the allocator, null where unknown [by=time]
            active_bytes (int64, bytes): allocated, or freed but awaited by a stream, null where unknown
                [by=time]
            largest_free_bytes (int64, bytes): largest free piece of what is reserved, null where unknown
                [by=time]
            change_bytes (int64, bytes): allocated then, below 0 freed [by=time]
            location (uint32): thread that did it, null where unknown [by=time]
            step (int64): step of its process at that time, null outside of all [by=category]
            time_ns (int64, ns): when [by=category]
            category (string): what the memory is for [by=category]
            allocated_bytes (int64, bytes): in use from then on; of the cache, free but held by the
                allocator [by=category]

        Raises:
            UsageError: where an option has no such choice.
        """

    def memory_owners(
        self,
        *,
        by: Literal["line", "module", "function", "category"] = "line",
        at: Literal["peak", "end", "oom"] = "peak",
    ) -> Table:
        """Who owns the memory that is in use at its peak, and whose part of it grows from step to step?

        Show who allocated the memory that is in use at one moment: at the peak, at the end, or when an
        allocation failed.

        Rows are of one memory, owner and category; their bytes add up to what is in use then. by line: the
        innermost function of the user, in snapshots of PyTorch with the line that allocates, in profiles
        with its first line. by module: the innermost module of PyTorch that is called, where its calls were
        recorded, else the innermost function `forward`. by function: what was running, whoever it belongs
        to. growth is from the median of the first quarter of the steps' ends to that of the last, without
        the steps that warm up; without 12 steps, of equal parts of the recording. It is steady if each
        quarter is above the one before, by a sixth of the growth at least: then the owner keeps allocating
        what it never frees. (unknown) is what was allocated before the recording, or where nothing was
        recorded. Needs the address of every block: profiles of PyTorch with profile_memory=True, its
        snapshots, allocations of CUDA.

        Options:
            by: What an owner is.
            at: Of which moment; oom: when the last allocation failed.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process
            device (int64): number of the GPU, null for the host
            memory (string): kind of memory
            owner (string): who allocated it
            function (string): function at that line, null for other owners
            category (string): what it is for, see strobe memory --by category
            allocated_bytes (int64, bytes): of it in use then
            share (float64): part of all that is in use then, 0 to 1
            blocks (int64): number of blocks in use then
            growth_bytes (int64, bytes): how much more it is late than early, null where parts are too few
            step_growth_bytes (float64, bytes): the same for each step, null without steps
            steady (bool): whether it grows throughout
            time_ns (int64, ns): when: the moment

        Raises:
            UsageError: where an option has no such choice.
        """

    def mesh(
        self,
        *,
        by: Literal["dimension", "rank", "stage", "step", "expert"] = "dimension",
    ) -> Table:
        """Which groups of ranks does a training have, what are they for, and what do pipelines and experts lose?

        Show the dimensions of a training (data, sharded, tensor, pipeline, expert), bubbles by cause, and
        uneven experts.

        A dimension is a set of groups of ranks that do the same, are of one size, and have no rank in
        common. What it is for is known by the name that the program gives it (a description of the group, a
        dimension of DeviceMesh), else by what its ranks communicate: expert where they exchange parts
        (all-to-all); pipeline where messages connect each rank with two others at most; sharded with
        all-gathers and reduce-scatters; tensor with all-reduces in the forward and in the backward pass, or
        reduce-scatters in the forward and all-gathers in the backward pass; data with all-reduces in or
        after the backward pass alone. Calls of up to 64 bytes, or of 1 % of a group's bytes, do not count
        (a loss, a norm). Else it is unknown: null.

        By dimension: a steady step, the mean of the ranks. time: in its calls and kernels. wait: of that,
        for ranks that come later, as in strobe waits. exposed: of that, what no computation hides.

        A step of a pipeline is, for all its stages, that of the first one: until the first stage begins the
        next step. idle = waits for other ranks (on a GPU also when nothing runs); communicating = other
        time in communication that nothing hides; computing = all other time. They add up to the step. idle
        = fill + between + drain + sync. fill: until the first message arrived at the stage. drain: from the
        last message that it sent or got until all stages are done. between: in between, for messages. sync:
        the rest: for replicas and other dimensions. The bubble = fill + between + drain. Of it, schedule =
        what all stages together idle in a replay of the step in which each stage computes as long as the
        mean of all, and messages take no time: for GPipe and 1F1B with p stages and m microbatches it is (p
        - 1) / m of the computation, with v stages of the model on each rank (p - 1) / (v m). imbalance =
        what that replay lasts longer with the computation of each stage as it was. What is left is due to
        messages and other waits.

        By expert: a dispatch is an all-to-all whose successor in the group, the combine, sends back on
        every rank what the rank got. expert = computation between the two. imbalance = 1 - mean / max over
        the ranks of the group, of expert_ns.

        Options:
            by: One row per dimension, rank (its coordinates), stage of a pipeline, stage and step, or rank
                of experts.

        Columns:
            rank (int64): rank of the process, null if it has none [by=rank or expert]
            step (int64): number of the step in its process [by=step]
            dimension (string): what the program calls it, else what it is for [by=dimension or rank or
                expert]
            kind (string): data, sharded, tensor, sequence, pipeline or expert; null unknown [by=dimension
                or rank or expert]
            source (string): how the kind is known: by its name or its use [by=dimension]
            also (string): other kinds of communication among the same ranks [by=dimension]
            groups (int64): number of its groups [by=dimension]
            size (int64): ranks in each group [by=dimension]
            ranks (string): ranks of its groups, as JSON [by=dimension]
            calls (float64): calls of a rank in a step [by=dimension]
            sent_bytes (float64, bytes): bytes that a rank puts in [by=dimension]
            received_bytes (float64, bytes): bytes that a rank gets out [by=dimension]
            time_ns (float64, ns): time in its calls and kernels [by=dimension]
            wait_ns (float64, ns): of that, waiting for ranks that come later [by=dimension]
            exposed_ns (float64, ns): of that, what no computation hides [by=dimension]
            coordinate (int64): place of the rank in its group: its coordinate [by=rank]
            group_ranks (string): ranks of its group, as JSON [by=rank]
            pipeline (int64): number of the pipeline, one per replica [by=stage or step]
            stage (int64): place of the rank in the order in which activations reach it [by=stage or step]
            rank (int64): rank of the process, null if it has none [by=stage or step]
            steps (int64): steady steps that are summed [by=stage or expert]
            computing_ns (float64, ns): all time that is none of the following [by=stage or step]
            communicating_ns (float64, ns): in communication that no computation hides, without waits
                [by=stage or step]
            fill_ns (float64, ns): idle until its first message arrived [by=stage or step]
            between_ns (float64, ns): idle between its first and its last message, for messages [by=stage or
                step]
            drain_ns (float64, ns): idle from its last message until all stages are done [by=stage or step]
            sync_ns (float64, ns): other waits: for replicas, in other dimensions [by=stage or step]
            step_ns (float64, ns): the sum of these [by=stage or step]
            received_bytes (float64, bytes): bytes that dispatches bring it in a step [by=expert]
            expert_ns (float64, ns): computation between dispatch and combine, of a step [by=expert]
            wait_ns (float64, ns): waits for other ranks in all-to-alls, of a step [by=expert]
            busiest (int64): steps in which its experts compute longest [by=expert]

        Raises:
            UsageError: where an option has no such choice.
        """

    def messages(
        self,
        *,
        by: Literal["pair", "size", "tag", "communicator", "step", "call", "node", "cluster"] = "pair",
        step: str = "all",
        step_class: str | None = None,
        collectives: Literal["none", "as-data"] = "none",
    ) -> Table:
        """Who sends how much to whom, and how fast?

        Sum the messages of MPI and gloo, and one-sided communication, those of folded steps included.

        A message is a send and its receive: the n-th send of a sender, receiver, communicator and tag is
        the n-th receive, in the order in which they were asked for. It has as many bytes as were sent.
        duration = completion of the receive - begin of the send, which a late receiver makes long; transfer
        = completion of the receive - the later one of the begin of the send and the begin of the call that
        asked for it; rate = bytes / transfer, of those whose transfer takes at least twice the error of the
        clocks. Late sender and late receiver are those of strobe waits, where they are longer than the
        error of the clocks; of a call that completes several messages, the longest wait counts. A message
        of which the trace has one end counts, without times. What a rank sends to itself counts, too. With
        --step, a message is of the step in which its send began.

        A put or an atomic operation goes from its origin to its target, a get from its target to its
        origin; the bytes of an atomic operation are those of both ways.

        Bytes of the whole run are exact: what the totals of the recording (message_totals) have beyond its
        messages is in the row of the pair, whose number of messages is then null.

        With --collectives as-data, collectives of MPI count where the call defines who sends what to whom:
        broadcast and scatter (from the root), gather and reduce (to the root), all-gather and all-to-all
        (from each to each, itself included). All-reduce, reduce-scatter, scan and all-to-all with counts of
        its own for each rank do not define it; strobe collectives has their bytes. Of an all-gather or
        all-to-all in place, bytes come out too low by (n-1)/n.

        Options:
            by: What a row is of.
            step: Steps to include: steady, all, 14, 10..20.
            step_class: Only steps of this class.
            collectives: Whether to count collectives as messages.

        Columns:
            kind (string): message, put, get, atomic; of collectives: broadcast, ...
            sender (int64): rank of the sender, null if unknown [by=pair]
            receiver (int64): rank of the receiver, null if unknown [by=pair]
            from_bytes (int64, bytes): messages from this size to less than twice as large [by=size]
            tag (int64): tag of the message, null without one [by=tag]
            communicator (string): name of the communicator [by=communicator]
            step (int64): number of the step in its process [by=step]
            sender_call (string): call that completed the send, and what called it [by=call]
            receiver_call (string): the same of the receive [by=call]
            sender_host (string): host of the sender [by=node]
            receiver_host (string): host of the receiver [by=node]
            sender_cluster (int64): cluster of the sender, as strobe clusters numbers them [by=cluster]
            receiver_cluster (int64): cluster of the receiver [by=cluster]
            messages (int64): how many, null if not all are in the trace
            unmatched (int64): those of which the trace has one end
            total_bytes (int64, bytes): bytes sent
            min_bytes (int64, bytes): smallest
            mean_bytes (float64, bytes): mean size
            max_bytes (int64, bytes): largest
            duration_mean_ns (float64, ns): from the begin of the send to the end of the receive, mean
            duration_max_ns (int64, ns): the same, most
            transfer_mean_ns (float64, ns): from when both had begun to the end of the receive, mean
            transfer_max_ns (int64, ns): the same, most
            rate_gb_s (float64, GB/s): bytes by transfer time
            late_sender_ns (int64, ns): what the receiver waited for the sender, as in strobe waits [by=pair
                or node]
            late_receiver_ns (int64, ns): what the sender waited for the receiver [by=pair or node]

        Raises:
            UsageError: where `step` or `step_class` are not of steps of this trace; or where an option has
                no such choice.
        """

    def notes(self) -> Table:
        """What did people note on the timeline?

        A note is on a moment, on a range of time, or on a span, and belongs to a thread or stream, or to
        all of them. Notes are written on the page Timeline of `strobe view`. They are in the file
        `notes.json` in the trace's folder, or in `FILE.notes.json` beside a file of another tool;
        measurements do not change with them.

        Columns:
            kind (string): moment, range, span
            start_ns (int64, ns): begin, since the start of the trace
            duration_ns (int64, ns): length; 0 for a moment
            rank (int64): rank of the process of the row; null if unknown, or for all rows
            thread (string): name of the thread or stream; null for all rows
            span (string): name of the span; null if the note is not on a span
            text (string): what was noted
            location (int64): the row; null for all rows
            depth (int64): depth of the span; null if the note is not on a span
            changed_unix_ns (int64, ns): when it was written, since 1970 (UTC)
            key (string): its name in the file
        """

    def operators(
        self,
        *,
        by: Literal["name", "type", "shape", "module", "line"] = "name",
        per: Literal["run", "rank", "step"] = "run",
        search: str = "",
        step: str = "auto",
        step_class: str | None = None,
    ) -> Table:
        """Which operators take the time?

        Sum operators, and the ranges that PyTorch reports like them (optimizer steps, nodes of the backward
        graph).

        total = sum of durations, an operator inside an operator of the same name (type, module, ...)
        counted once; self = total minus the time in spans directly inside; share = self / self of all
        operators, so shares add up to 1; cumulative share = the share of the row and of all rows with a
        greater one; avg, median, min, max over single calls; per step = self / number of selected steps.
        device total = sum of the durations of the kernels, copies and sets that were launched inside, by
        the correlation of the launching call; device self = of those, what no operator inside launched.
        What a CUDA graph runs counts, each time, for the operators around the calls that captured it, not
        for those around the graph's launch. All ranks and all GPUs are summed unless `per` splits them;
        what a GPU did belongs to the step in which it was launched: an operator may have work of GPUs in
        steps in which it was not executed. All are exact whether steps were folded or not, but for medians:
        where calls were folded, these come from histograms whose buckets are half an octave (41 %) wide.

        By module: the innermost `nn.Module` around the operator as PyTorch's profiler recorded it, else the
        class of the innermost function `forward` that strobe recorded; the backward pass belongs to the
        modules of the forward operators with its sequence numbers, where the trace has these. By line: the
        innermost Python function around the operator that is neither Python's own nor of an installed
        package, with the line where it begins; from the call stacks of older profiles, the line of the
        call. search keeps rows whose names hold all its words, in any case. Waits for data and
        communication are not operators; what a collective launches belongs to the operator around it.

        JAX and TensorFlow launch whole modules. Where no operator is on the host, and kernels name the
        operations of XLA that they belong to, these are the rows: what GPUs did of each, by
        `module/operation`, by module, or by the line of the program that the compiler kept. Columns of the
        host are null then.

        Options:
            by: One row per name, type, input shape, module or line.
            per: One row for the whole run, or per rank or step.
            search: Only rows whose names contain all these words, in any case.
            step: Steps to include: steady, all, 14, 10..20.
            step_class: Only steps of this class.

        Columns:
            rank (int64): rank of the process, null if it has none [per=rank]
            process (uint32): process [per=rank]
            step (int64): step that the operators begin in, null outside of every step [per=step]
            name (string): name of the operator [by=name or shape]
            shapes (string): shapes of its inputs, as JSON; null where not recorded [by=shape]
            type (string): type of the operator: its name without name space, in-place mark and variant
                [by=type]
            module (string): innermost module around them, null: none [by=module]
            line (string): file:line of the user's innermost function around them, null where unknown
                [by=line]
            function (string): name of that function [by=line]
            calls (int64): executions, null where only kernels name it
            total_ns (int64, ns): time in it and in what it calls
            self_ns (int64, ns): time in it alone
            share (float64): self time as a part of the self time of all operators, 0 to 1
            cumulative_share (float64): share of it and of all with a greater one, 0 to 1
            avg_ns (float64, ns): mean duration of a call, null without one
            median_ns (float64, ns): median duration of a call, null where unknown
            min_ns (int64, ns): shortest call
            max_ns (int64, ns): longest call
            calls_per_step (float64): executions per step
            self_per_step_ns (float64, ns): self time per step
            device_total_ns (int64, ns): time of GPUs in what was launched or captured inside, null: no GPU
            device_self_ns (int64, ns): the same without what operators inside launched
            kernels (int64): kernels, copies and sets that were launched or captured inside
            type (string): type of the operator: its name without name space, in-place mark and variant
                [by=name or shape]

        Needs:
            PyTorch operators: strobe run --trace +torch

        Raises:
            UsageError: where `step` or `step_class` are not of steps of this trace; or where an option has
                no such choice.
        """

    def overlap(
        self,
        *,
        by: Literal["rank", "step", "lane"] = "rank",
    ) -> Table:
        """What does the time of each GPU go into, and is communication hidden behind computation?

        Divide the time of every GPU among sets of kinds of work; all ranks and all their GPUs.

        The time from the first start to the last end of a GPU's kernels, copies and memory sets (or one
        step of its process, or one lane) is cut where anything begins or ends, on any stream. busy =
        something runs; idle = nothing does. The last seven columns (`only_...`) hold the time in which
        exactly the kinds of their name run: with `idle_ns` they add up to `duration_ns`. communication =
        collectives and messages among GPUs: kernels with names of NCCL, RCCL, oneCCL, HCCL, DeepEP,
        NVSHMEM, MSCCL or custom all-reduces, kernels with the name of a collective among their arguments,
        those launched directly by a collective (`c10d::`), and those that the file of rules in STROBE_RULES
        names; exposed communication = the part in which nothing computes; overlap = the part of
        communication in which something does, 0 to 1 (HTA: comm_comp_overlap).

        The lane of a step begins with the first activity that was launched since the step began, and ends
        with the first that was launched since the next one began: `step` is the time of the host, `lane`
        the work of the step. Lanes follow each other without gap, and are known of folded steps, too; by
        step these have no rows. In traces of an older strobe folded steps count by the sums of what they
        launched, of which as much runs at the same time as in detail.

        Options:
            by: One row per GPU, or per GPU and step: its time, or its lane.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            step (int64): number of the step in its process [by=step or lane]
            duration_ns (int64, ns): first start to last end of its work; with --by step, lane: of that
            busy_ns (int64, ns): time in which anything runs on it
            idle_ns (int64, ns): time in which nothing does
            computation_ns (int64, ns): time in which a kernel computes
            communication_ns (int64, ns): time in which a kernel communicates
            copy_ns (int64, ns): time in which memory is copied or set
            exposed_communication_ns (int64, ns): communication while nothing computes
            overlap (float64): part of the communication while something computes, 0 to 1
            only_computation_ns (int64, ns): time in which exactly these run
            only_communication_ns (int64, ns): time in which exactly these run
            only_computation_and_communication_ns (int64, ns): time in which exactly these run
            only_copy_ns (int64, ns): time in which exactly these run
            only_computation_and_copy_ns (int64, ns): time in which exactly these run
            only_communication_and_copy_ns (int64, ns): time in which exactly these run
            only_computation_and_communication_and_copy_ns (int64, ns): time in which exactly these run

        Raises:
            UsageError: where an option has no such choice.
        """

    def profile(
        self,
        *,
        form: Literal["flat", "tree", "inverted"] = "flat",
        step: str = "auto",
        step_class: str | None = None,
        min_share: float = 0.0,
    ) -> Table:
        """Which functions take the time?

        Sum all spans, and the statistics of those that were folded, by call path.

        flat: a row per region; total counts recursion once. tree: a row per call path, callers before
        callees. inverted: a row per region with its callers below it, each with the self time of the region
        that it is responsible for. share: self time (in the tree: total time) as a part of the self time of
        everything, which is the sum of the busy times of all locations. Rows with a share (of total time)
        below `min_share` are left out.

        Options:
            form: A row per function, or a tree of callers or callees.
            step: Steps to include: steady, all, 14, 10..20.
            step_class: Only steps of this class.
            min_share: Leave out rows with a smaller share of the time, 0 to 1.

        Columns:
            name (string): name of the region [form=flat]
            paradigm (string): who reported it [form=flat]
            role (string): what it is [form=flat]
            group (string): what it is summed as [form=flat]
            calls (int64): executions [form=flat]
            total_ns (int64, ns): time in it and in what it calls, recursion counted once [form=flat]
            self_ns (int64, ns): time in it alone [form=flat]
            share (float64): self time as a part of the self time of everything, 0 to 1 [form=flat]
            avg_ns (float64, ns): total time per call [form=flat]
            min_ns (int64, ns): shortest call [form=flat]
            max_ns (int64, ns): longest call [form=flat]
            self_per_step_ns (float64, ns): self time per step [form=flat]
            file (string): source file [form=flat]
            line (uint32): first line of the definition [form=flat]
            name (string): name of the last region of the call path [form=tree]
            name (string): name of the region, or below it of its callers [form=inverted]
            depth (int64): number of rows above it that it belongs to [form=tree or inverted]
            calls (int64): executions [form=tree or inverted]
            total_ns (int64, ns): time in it and in what it calls [form=tree or inverted]
            self_ns (int64, ns): time in it alone [form=tree or inverted]
            share (float64): part of the self time of everything, 0 to 1 [form=tree or inverted]
            per_step_ns (float64, ns): time per step [form=tree or inverted]
            call_path (uint32): id of the call path [form=tree or inverted]

        Needs:
            spans: strobe run --preset auto

        Raises:
            UsageError: where `step` or `step_class` are not of steps of this trace; or where an option has
                no such choice.
        """

    def ranges(self) -> Table:
        """What did the ranges that the program marked do on the GPU?

        Sum ranges by name, with the GPU work that was launched inside them; all ranks and GPUs together.

        An execution of a range is projected from the first start to the last end of the kernels, copies and
        sets whose launching call began inside it, on the same thread (Nsight Systems: nvtx_gpu_proj_sum);
        work of ranges inside is not subtracted. What was captured into a CUDA graph inside a range is
        projected, too: once for each launch of the graph, unless it was launched inside the same execution.
        Executions that launched nothing count in `calls` and `total_ns` only, and so do those of ranges
        that are of no thread (NVTX's start/end ranges): what is launched while one is open may be
        anybody's.

        Columns:
            name (string): name of the range
            paradigm (string): who marked it: nvtx, itt, user, torch, ...
            calls (int64): executions
            total_ns (int64, ns): time in it on the host, one inside another of the same name counted twice
            projected (int64): executions that launched GPU work, and launches of graphs captured in one
            projected_ns (int64, ns): sum of the times from the first start to the last end of that work
            avg_ns (float64, ns): mean projected time
            median_ns (float64, ns): median projected time
            min_ns (int64, ns): shortest projected time
            max_ns (int64, ns): longest projected time
            std_ns (float64, ns): standard deviation of the projected times
            activities (int64): kernels, copies and memory sets launched or captured inside
        """

    def requests(
        self,
        *,
        by: Literal["route", "request", "cause"] = "route",
        route: str = "",
    ) -> Table:
        """How fast does a service answer, by route, and what do its slow requests wait for?

        Requests are found without a marker: of ASGI applications under uvicorn, aiohttp.web, servers of
        asyncio streams, and http.server. The latency is that of the server: from the arrival of the
        request's data until the last byte of the response was given to the socket. Where the event loop was
        busy when the data arrived, the arrival is what the kernel has for the connection, to 4 ms.
        Percentiles are exact, over every request, whether steps were folded or not: the value at rank (n -
        1) p, linear between two requests, as numpy.percentile has it. Failed are those with a status of 500
        and more, or without a response.

        A route is the template that the application declares. Servers without routes have the path; a part
        of it that is not a plain word of letters is {}. Queries and bodies are never recorded.

        The kinds of what a request does: start (arrived, until its code began), running (its code runs on
        the event loop), loop (it could go on, but the loop ran others, or collected garbage), and waits:
        sleep, lock, semaphore, condition, event, queue, thread (its job runs in an executor), thread pool
        (its job waits for a thread), connection pool, outgoing call, socket, client (the body, or a client
        that reads slowly), task (another task, where not known better), process, other (a future, nobody
        knows whose). The cause of a wait for a lock or semaphore of asyncio is who releases it. Where a
        request waits for tasks of its own, it is what the one of them does that ends last. What lasts less
        than 1 ms is `short`. Of http.server the kinds are `thread`, its functions by name, and `core`: its
        thread was ready to run, but the machine had no core for it. How long is known, not when: on the
        timeline it comes last.

        Slow requests are those above the 95th percentile of all, or of the route that is asked for. The
        sentence is about them, if half of them take at least twice as long as the median of all, and what
        it names is at least a quarter of their time. It has a second part about requests that take twice
        the median of their own route, if something else holds these up.

        Options:
            by: One row per route, per request (slowest first), or per cause of slow requests.
            route: Only requests of this route: its method and template, as the table has them.

        Columns:
            rank (int64): rank of the process, null if it has none [by=route or request]
            process (uint32): process that answers [by=route or request]
            request (int64): number of the request in its process [by=request]
            start_ns (int64, ns): when it arrived [by=request]
            location (uint32): row of the timeline that shows it [by=request]
            route (string): method and template of the route [by=route or request]
            requests (int64): requests that were answered, or given up [by=route]
            rate (float64, 1/s): requests per second, over the time from the first to the last of all
                [by=route]
            failed (int64): of them those with a status of 500 and more, or without a response [by=route]
            median_ns (int64, ns): median latency [by=route]
            p90_ns (int64, ns): 90th percentile of the latency [by=route]
            p95_ns (int64, ns): 95th percentile of the latency [by=route]
            p99_ns (int64, ns): 99th percentile of the latency [by=route]
            max_ns (int64, ns): longest latency [by=route]
            share (float64): of the latencies of all requests, added up [by=route]
            cumulative_share (float64): the same, together with the rows above [by=route]
            status (int64): status of the response, null where none was sent [by=request]
            latency_ns (int64, ns): from its arrival to the end of its response [by=request]
            start_delay_ns (int64, ns): until its code began [by=request]
            running_ns (int64, ns): its code ran on the event loop (http.server: CPU time); null: not known
                [by=request]
            collecting_ns (int64, ns): of that, the garbage collector ran [by=request]
            loop_ns (int64, ns): it could go on, but the event loop ran others [by=request]
            slow_requests (int64): slow requests that have it [by=cause]
            kind (string): what took most of its time: see above [by=request or cause]
            function (string): function that ran, or that waited [by=request or cause]
            cause (string): who kept it waiting, where known; of running its own route [by=request or cause]
            total_ns (int64, ns): how long, of all that it is of [by=request or cause]
            times (float64): how often a request does so, in the mean [by=cause]
            share (float64): of the time of all slow requests [by=cause]

        Needs:
            requests of uvicorn, aiohttp.web, asyncio.start_server or http.server: strobe run --trace
                +requests

        Raises:
            UsageError: where the trace has no request of the route; or where an option has no such choice.
        """

    def samples(
        self,
        *,
        by: Literal["function", "line", "thread"] = "function",
    ) -> Table:
        """What were the threads doing, by samples: Python, C code, or waiting?

        Sum samples by function, by line, or by thread; those of folded steps are among them.

        A sample stands for the time since its thread's sample before. python, native and collecting are CPU
        time: the interpreter ran, it was inside of one call or operator of C code, or garbage was
        collected. ready: the thread waited for the GIL or for a processor, and what is left of the time of
        samples that ran. waiting: it slept in the kernel; lock (or another thread), file, socket (or pipe),
        sleep and threads (those of native code computed meanwhile) are parts of it. All of these are of the
        innermost function; total is the time that ran in it and in what it calls, recursion counted once.
        share: the time that ran as a part of that of everything. By line: the line of the innermost
        function, of steps that were kept. Imported samples without a time count as 1 ns each.

        Of a program without Python, native is CPU time of a function, and what is waited for in pthreads
        has rows of its own: pthread_mutex_lock(NAME) has all waits for the lock NAME (lock), pthread_join,
        pthread_cond_wait, sem_wait and pthread_barrier_wait others (waiting). They are measured; other
        waits are seen 20 times a second, without a call stack.

        Options:
            by: One row per function, line, or thread.

        Columns:
            name (string): function [by=function or line]
            file (string): source file [by=function or line]
            line (int64): first line of the function [by=function]
            line (int64): line that ran, null of folded steps [by=line]
            name (string): name of the thread [by=thread]
            location (uint32): its location [by=thread]
            samples (int64): samples in it
            share (float64): part of the time that ran, 0 to 1
            python_ns (int64, ns): the interpreter ran it
            native_ns (int64, ns): it was in C code
            collecting_ns (int64, ns): it collected garbage
            ready_ns (int64, ns): it waited for the GIL or for a processor
            gil_ns (int64, ns): of ready: it waited for the GIL
            waiting_ns (int64, ns): it waited for something else
            lock_ns (int64, ns): of waiting: for a lock or another thread
            file_ns (int64, ns): of waiting: for a file
            socket_ns (int64, ns): of waiting: for a socket or a pipe
            sleep_ns (int64, ns): of waiting: until a time
            threads_ns (int64, ns): of waiting: for threads of native code that compute
            total_ns (int64, ns): time that ran in it and in what it calls [by=function]

        Raises:
            UsageError: where an option has no such choice.
        """

    def score(
        self,
        *,
        min_share: float = 0.01,
        max_call_ns: int = 1000,
    ) -> Table:
        """Which functions cost more to record than they are worth?

        A recorded call costs the program about the same time, whatever the function does, and its span some
        bytes of the trace. As in `scorep-score -g`, a function is to be left out (EXCLUDE) if it has
        `min_share` of all recorded calls or more, and takes `max_call_ns` on average or less, without what
        it calls. `strobe filter` writes these functions into a filter file for `strobe cc --filter` and
        `strobe run --filter`. Calls of MPI, kernels and others are never left out.

        bytes: size of the trace, shared out by spans. Calls that were folded have none.

        Options:
            min_share: Leave out functions with this share of all calls or more, 0 to 1.
            max_call_ns: Leave out functions that take so long on average or less. In ns.

        Columns:
            name (string): name of the region
            paradigm (string): who reported it
            calls (int64): executions
            share (float64): part of all calls, 0 to 1
            bytes (int64, bytes): of its spans in the trace
            self_ns (int64, ns): time in it alone
            per_call_ns (float64, ns): self time per call
            filter (string): EXCLUDE, if it is to be left out

        Needs:
            spans: strobe run --preset auto
        """

    def sequences(
        self,
        *,
        operator: str = "",
        least: int = 3,
    ) -> Table:
        """Which sequences of kernels do operators run again and again?

        Count which sequences of kernels, copies and memory sets operators run on each GPU; the most
        frequent come first.

        A sequence is what one execution of an operator launches, and operators inside of it, on one GPU, in
        order of the starts there; equal ones have the same operator and the same full names (HTA: frequent
        CUDA kernel sequences). What it captured into a CUDA graph is a sequence each time that the graph is
        launched. With `operator`, all ranges and operators whose names contain that text are looked at,
        else operators of PyTorch, nodes of its backward graph and steps of its optimizers; of those inside
        each other only the outermost (HTA: only those as deep as the one that is the least deep in the
        whole file). `least`: activities of a sequence at least. share = part of the time of all activities
        of the GPU, summed.

        Options:
            operator: Only operators and ranges whose names contain this.
            least: Smallest number of kernels, copies and memory sets in a sequence.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            operator (string): operator or range that launched it
            count (int64): how often executions of the operator ran this sequence
            length (int64): kernels, copies and memory sets of the sequence
            device_ns (int64, ns): their durations, summed over all executions
            share (float64): part of the time of everything that the GPU ran, 0 to 1
            host_ns (int64, ns): durations of the operators, of each execution once
            sequence (string): short names in order of start; 3x name: three after each other
            names (string): full names, | between them; of the first 200
            location (uint32): thread of the first execution of the operator
            row (int64): its span there
        """

    def serving(
        self,
        *,
        by: Literal["class", "step", "layer", "gap", "latency"] = "class",
    ) -> Table:
        """What does a serving engine compute in its steps, and how fast is it?

        Sum the steps that an engine marks (vLLM, SGLang, ATOM, TensorRT-LLM, xDiT) by what their marks
        hold: requests and tokens of each, and where the mark has them the lengths of the contexts. Steps
        are those of `strobe steps`; the class is what the mark names: prefill computes prompts, decode a
        token of each request, mixed both; speculative verifies several guessed tokens of a request, draft
        makes such guesses, idle computes none. A step lasts until the next one begins, as everywhere: what
        is launched between two marks (sampling, copies) belongs to the first.

        The GPU time of a step is that in which anything runs that the step launched, whenever it runs:
        engines launch ahead, and a step may end on the host long before its kernels begin. Several GPUs of
        a process add up. Attention, matrix products and communication are kernels of that type (`strobe
        kernels --by type`), each kernel counted in full. Tokens per second are those of the steps that
        another one follows, over the time from the begin of each to the begin of the next. Rows of classes
        are means over the steps that are complete and not part of the warm-up.

        By layer: what is launched inside of the modules that a model repeats (the outermost `nn.Module` of
        which there are several of one class beside each other); kernels of a graph count where the captured
        call is in the trace.

        By gap: when nothing of what the steps launched runs on a GPU, and what the host does meanwhile on
        the thread that launches what comes next, until it has launched it. `between`: the last kernel is of
        the step before. The causes are stages of the engine, by its functions and files: scheduler,
        sampling, tokenising, detokenising, launch (the model runner, operators and calls outside of the
        others, and the time from a launch to the begin of the work), wait (calls in which the host waits
        for a GPU), other (functions outside of all of these); null where nothing of the host was recorded.
        Gaps before the first step are left out.

        Without an engine, loops that generate tokens are found by structure, with PyTorch's operators: an
        iteration looks tokens up, computes, and chooses the next token of each sequence; with recorded
        shapes, the first iteration of a request has more tokens and the others one of each sequence (or,
        without a cache, one more each time); without shapes, something is carried on and the median product
        of the first takes twice as long, or more. Runs with a backward pass have none. A request is a call
        of the function that holds such iterations; where none was recorded, shapes show where one begins.
        Its first iteration (prefill) begins with the request, the others are decodes. They are numbered on
        their own, and are iterations of `strobe steps` only where these are tokens. Tokens are null without
        shapes.

        By latency: the time to the first token, from the begin of a request to the end of its first
        iteration; the time per output token, which is the rest of the request by its other iterations; and
        how many tokens a sequence has in a second of its request. Iterations that were folded count by
        their records, requests of which only statistics remain do not.

        Options:
            by: One row per class of steps, per step, per layer of the model, per cause of gaps on the GPU,
                or for the latency of requests.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that runs the steps
            step (int64): number of the step in its process [by=step]
            start_ns (int64, ns): begin of the step [by=step]
            class (string): what it computes: prefill, decode, diffusion ..., or the mark's own word
                [by=class or step or layer or gap]
            steps (int64): steps that the row is a mean over [by=class or layer or gap]
            layer (string): the module [by=layer]
            requests (float64): requests in the batch [by=class or step]
            prefill_requests (float64): of them those whose prompt is computed [by=class or step]
            tokens (float64): tokens that are computed, of prompts and of answers [by=class or step]
            prefill_tokens (float64): of them those of prompts [by=class or step]
            context_tokens (float64): tokens that all requests have by then, together [by=class or step]
            attention_pairs (float64): computed tokens times tokens of the context, over requests [by=class
                or step]
            duration_ns (int64, ns): how long the step takes on the host [by=class or step]
            tokens_per_second (float64, 1/s): tokens over the time to the next step; null: none follows
                [by=class or step]
            gpu_ns (int64, ns): time in which anything runs that it launched [by=class or step or layer]
            gpu_ns_per_token (float64, ns): the same for each token that is computed [by=class or step or
                layer]
            kernels (float64): kernels that it launched [by=class or step or layer]
            attention_ns (int64, ns): kernels of attention [by=class or step or layer]
            matrix_product_ns (int64, ns): kernels of matrix products [by=class or step or layer]
            communication_ns (int64, ns): kernels that communicate [by=class or step or layer]
            where (string): between: the last kernel is of the step before; inside: of the same one [by=gap]
            cause (string): what the host does meanwhile, see above; null: not recorded [by=gap]
            idle_ns (int64, ns): how long a GPU is idle in a step by it [by=gap]
            share (float64): of the duration of the steps [by=gap]
            gaps (float64): gaps in a step that have it [by=gap]
            function (string): what most of it passes in; null: nothing has 30 % of it [by=gap]
            line (string): where that is [by=gap]
            function_share (float64): part of the time that passes in it, without its callees [by=gap]
            function (string): whose calls the requests are; null: they begin with their prompts
                [by=latency]
            requests (int64): requests that were found [by=latency]
            output_tokens (float64): tokens of the answer to a sequence, mean [by=latency]
            time_to_first_token_ns (int64, ns): from the begin of a request to the end of its first
                iteration; mean over requests [by=latency]
            median_time_to_first_token_ns (int64, ns): from the begin of a request to the end of its first
                iteration; median over requests [by=latency]
            p95_time_to_first_token_ns (int64, ns): from the begin of a request to the end of its first
                iteration; 95th percentile over requests [by=latency]
            time_per_output_token_ns (int64, ns): of each further token of a request; null: none has any;
                mean over requests [by=latency]
            median_time_per_output_token_ns (int64, ns): of each further token of a request; null: none has
                any; median over requests [by=latency]
            p95_time_per_output_token_ns (int64, ns): of each further token of a request; null: none has
                any; 95th percentile over requests [by=latency]
            tokens_per_second (float64, 1/s): tokens of one sequence by the time of its request [by=latency]

        Needs:
            marks of a serving engine (`step[DECODE bs=8]`) or loops that surely generate tokens

        Raises:
            UsageError: where an option has no such choice.
        """

    def statistics(self) -> Table:
        """What remains of what was not kept in detail?

        List the sums over what was folded, by location, call path and class of steps; see schema
        `statistics`.

        Spans and statistics together are everything that ran: `strobe sql` sees both as `totals`.

        Columns:
            location (uint32): where it ran
            call_path (uint32): what was executed, and all regions around it
            class (string): class of the steps that it ran in, null outside of every step
            count (uint64): executions that were folded; 0 where only what ran directly inside of spans was
            total_ns (int64, ns): sum of their durations
            self_ns (int64, ns): the same without direct children; below 0 where the spans' own time holds
                too much
            min_ns (int64, ns): shortest, 0 where the count is 0
            max_ns (int64, ns): longest
            sum_squares (float64, ns2): sum of the squares of the durations
            histogram (list<uint32>): executions by duration: 64 buckets, bucket i from 2^(i/2) ns on
            short (bool): left out of steps in detail, by --min-duration; else the whole step was folded

        Needs:
            spans: strobe run --preset auto
        """

    def step_time(
        self,
        *,
        by: Literal["rank", "class", "step"] = "rank",
    ) -> Table:
        """What does the time of a step go into: kernels, copies, communication, launching, waiting for data, the host?

        Divide the time of every step among kinds of work by priority; all ranks, all threads and GPUs of
        each.

        Where several run at once, the first of these takes the time: kernels that compute, copies, memory
        sets, communication (kernels of NCCL and its like, collectives and messages on the host), calls of
        CUDA or HIP, waits for the data loader, operators and ranges on the host. `other` is what is left:
        Python, mostly. So the eight columns add up to `duration_ns`. Source: torch-tb-profiler 0.4.3
        (overall_parser.py); unlike it, kernels that communicate are recognised by their own names. As
        there, a step lasts until the work that it launched is done on the GPU, so that where a GPU runs
        behind, steps are not those of `steps`; where the profiler marked steps, its marks are the steps.
        The rows of ranks and classes are means over all steps that are complete. Where most are statistics
        only, those that are kept stand for the time of their class, and slow ones for themselves.

        Options:
            by: One row per rank, per rank and class (means of their steps), or per step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that runs the steps
            step (int64): number of the step in its process [by=step]
            class (string): class of the steps [by=class or step]
            start_ns (int64, ns): when the step begins [by=step]
            steps (int64): steps of the run that the row is a mean over [by=rank or class]
            duration_ns (int64, ns): how long the step takes
            kernel_ns (int64, ns): a kernel computes
            memcpy_ns (int64, ns): memory is copied on a GPU, and no kernel runs
            memset_ns (int64, ns): memory is set on a GPU, and nothing of the above
            communication_ns (int64, ns): collectives or messages, and nothing of the above: exposed
                communication
            runtime_ns (int64, ns): a call of CUDA or HIP, and nothing of the above
            data_loader_ns (int64, ns): the loop waits for its next batch, and nothing of the above
            cpu_exec_ns (int64, ns): an operator or a range on the host, and nothing of the above
            other_ns (int64, ns): nothing of all that
            kernel_share (float64): kernel as a part of the step, 0 to 1
            memcpy_share (float64): memcpy as a part of the step, 0 to 1
            memset_share (float64): memset as a part of the step, 0 to 1
            communication_share (float64): communication as a part of the step, 0 to 1
            runtime_share (float64): runtime as a part of the step, 0 to 1
            data_loader_share (float64): data_loader as a part of the step, 0 to 1
            cpu_exec_share (float64): cpu_exec as a part of the step, 0 to 1
            other_share (float64): other as a part of the step, 0 to 1
            counted (bool): whether it enters the means [by=step]

        Raises:
            UsageError: where an option has no such choice.
        """

    def step_trace(
        self,
        *,
        by: Literal["rank", "class", "step", "collective"] = "rank",
    ) -> Table:
        """How long is a step before, in and after its forward and backward pass, and when are its collectives?

        Divide every step into iteration interval, forward and backward, and tail, as MindSpore does; all
        ranks.

        interval = from the end of the step before to the first operator of the forward pass; of it
        `wait_ns` for data; forward_backward = from there to the end of the last one of the backward pass
        (of a step that has none: of the step); tail = the rest: gradients still under way, the optimizer.
        They add up to `duration_ns`. Nothing has to be marked: the passes are recognised by PyTorch's
        names. Where steps launch kernels that compute, and these end before the next step begins, times are
        those of the kernels; else those of the host. A step lasts as long as in `steps`. The rows of ranks
        and classes are means over all steady steps (MindSpore: over all); kept ones stand for those that
        are statistics only. MindInsight advises to look at the interval where its mean is above 0.5 ms.
        With `by=collective`, a row is what a line `stream_<number>_<k>` of MindSpore is: the k-th
        collective of a step on a stream. Source: MindSpore 2.0.0
        (mindspore/profiler/parser/step_trace_parser.py).

        Options:
            by: One row per rank, rank and class (means of their steps), step, or collective of a step.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that runs the steps
            step (int64): number of the step in its process [by=step or collective]
            class (string): class of the steps [by=class or step]
            start_ns (int64, ns): when the step begins [by=step]
            steps (int64): steps of the run that the row is a mean over [by=rank or class]
            duration_ns (int64, ns): how long the step takes [by=rank or class or step]
            interval_ns (int64, ns): from the end of the step before to the begin of the forward pass
                [by=rank or class or step]
            forward_backward_ns (int64, ns): from there to the end of the backward pass [by=rank or class or
                step]
            tail_ns (int64, ns): from there to the end of the step: gradients under way, the optimizer
                [by=rank or class or step]
            wait_ns (int64, ns): of interval_ns, waits for the next batch [by=rank or class or step]
            interval_share (float64): interval_ns as a part of the step, 0 to 1 [by=rank or class or step]
            forward_backward_share (float64): forward_backward_ns as a part of the step, 0 to 1 [by=rank or
                class or step]
            tail_share (float64): tail_ns as a part of the step, 0 to 1 [by=rank or class or step]
            counted (bool): whether it enters the means [by=step]
            line (string): stream_<number>_<k>: the k-th collective of the step on that stream
                [by=collective]
            name (string): name of its kernel [by=collective]
            part (string): where it begins: interval, forward_backward, tail [by=collective]
            start_ns (int64, ns): when it begins [by=collective]
            duration_ns (int64, ns): how long it takes [by=collective]

        Raises:
            UsageError: where an option has no such choice.
        """

    def steps(
        self,
        *,
        step_class: str | None = None,
        step_level: str | None = None,
        step_at: str | None = None,
        only: Literal["all", "outliers"] = "all",
    ) -> Table:
        """Which steps does the run have, and which were slow?

        List the steps, by process and in order of time; see schema `steps` for the columns.

        Steps are found without a marker: by PyTorch's own ranges (optimizer, data loader), otherwise by
        what repeats in the calls. `strobe.step` or profiler steps decide where the program has them. They
        are all here, whether they were kept in detail or folded into statistics. `step_class` and `only`
        leave rows out.

        Options:
            step_class: Only steps of this class.
            step_level: Use the iterations of this loop as steps: +1 (around it), -1 (inside), or its name.
            step_at: Begin a step at each event of this name.
            only: All steps, or only outliers.

        Columns:
            process (uint32): process that runs the loop
            step (int64): number of the step in its process, from 0
            start_ns (int64, ns): when the program asked for the step's data, or the loop's body began
            duration_ns (int64, ns): until the next step begins, or the loop's body ends
            class (string): path through the loop: train, train+validation, ...; partial if cut off
            data_wait_ns (int64, ns): until the batch is at hand: waiting for it, or making it
            forward_ns (int64, ns): forward: what leads up to a backward pass; without a backward pass, all
                operators
            backward_ns (int64, ns): backward pass, from its first to its last node
            optimizer_ns (int64, ns): optimizer: update and zeroing of gradients, clipping and averages of
                weights
            validation_ns (int64, ns): of a training: data that run forward without a backward pass
            rest_ns (int64, ns): everything else; the six parts add up to the duration
            steady (bool): false for the slow steps of the warm-up and for steps that are cut off
            outlier (bool): takes much longer than its class usually does
            cause (string): of a slow step: the part that exceeds its median the most (its column without
                _ns)
            loop (uint32): main loop that it is an iteration of, see `loops`: the phase of the run
            detail (string): all (with its spans), part (with the spans of its end), none (folded into
                statistics)
            drift (float64): lasting change of its class until then, as a share of its first duration
            events (uint32): events in which loops are searched, null if it was not recorded as a step
            path_hash (uint64): equal for the same events in the same order, null if `events` is

        Needs:
            spans: strobe run --preset auto

        Raises:
            UsageError: where the trace has no such class of steps, loop or event; or where an option has no
                such choice.
        """

    def stragglers(
        self,
        *,
        by: Literal["rank", "kind", "collective"] = "rank",
    ) -> Table:
        """Which rank comes late to collectives, and what do the others wait for it?

        Sum by how much every rank comes too late to collectives: by its arrival there, not by the time of
        its phases.

        Looked at are collectives in which all wait for all (all-reduce, all-gather, reduce-scatter,
        all-to-all, barrier). A rank arrives when its kernel starts on the GPU (NCCL, RCCL), or when its
        call begins (MPI, gloo; NCCL where its kernels are not recorded: then the host does not wait, and
        `wait` is what the GPU would). late = arrival minus that of the middle one, the earlier of two
        (below 0: earlier). wait = last arrival minus its own. delay = last arrival minus the last but one:
        how much sooner the collective could begin if the last one came with the next. `last` and `delay_ns`
        count only delays above the error of the clocks: the sum of what that of the last one, and of any of
        the others, may be off. It is how well ends of collectives agree, as found when the files of ranks
        were put together; 0 on one machine. The sentence below the table names the late rank if one causes
        half of the delays (of two ranks: two thirds). Ranks are matched by group and number of the
        collective, else by order, else by what overlaps.

        Options:
            by: One row per rank, rank and kind of collective, or collective.

        Columns:
            rank (int64): rank of the process, null if it has none [by=rank or kind]
            process (uint32): process [by=rank or kind]
            device (int64): number of the GPU, null for collectives on the host [by=rank or kind]
            kind (string): kind of collective: allreduce, allgather, ... [by=kind or collective]
            group (string): name of the group, null where unknown [by=kind or collective]
            collectives (int64): collectives that it and another rank took part in [by=rank or kind]
            last (int64): those to which it came last, by more than the error of the clocks [by=rank or
                kind]
            delay_ns (int64, ns): how much sooner those could have begun: its arrival - the last but one
                [by=rank or kind]
            late_mean_ns (float64, ns): its arrival - that of the middle rank, mean [by=rank or kind]
            late_median_ns (float64, ns): the same, median [by=rank or kind]
            late_max_ns (int64, ns): the same, most [by=rank or kind]
            wait_ns (int64, ns): what it waited itself: last arrival - its own, all collectives [by=rank or
                kind]
            clock_error_ns (int64, ns): by how much its clock may be wrong [by=rank or kind]
            unmatched (int64): collectives that are of no other rank in this trace [by=rank or kind]
            sequence (int64): number in the group, null where unknown [by=collective]
            ranks (int64): who took part, as far as they are in this trace [by=collective]
            start_ns (int64, ns): first arrival [by=collective]
            last_rank (int64): rank that arrived last [by=collective]
            late_ns (int64, ns): last arrival - that of the middle rank [by=collective]
            delay_ns (int64, ns): last arrival - the last but one [by=collective]
            wait_ns (int64, ns): what all waited: last arrival - their own, summed [by=collective]
            clock_error_ns (int64, ns): by how much the last two arrivals may be wrong [by=collective]
            location (uint32): where the last one ran [by=collective]
            row (int64): number of its span there [by=collective]

        Raises:
            UsageError: where an option has no such choice.
        """

    def streams(self) -> Table:
        """What did each stream of each GPU do: how long was it busy, and how long alone?

        Show what each stream of each GPU did between the first start and the last end of the GPU's work.

        busy = time in which a kernel, copy or set of the stream runs; alone = the part of it in which no
        other stream of the GPU has anything to run: what all of it is for the only stream that is used, and
        what several streams are to lessen. Kernels and copies of a stream follow each other but for some
        that a GPU runs at once, so that their times may add up to more than busy. priority: lower numbers
        run first; null where it is not known.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            stream (string): name of the stream
            priority (int64): its priority: the lowest number comes first; null where unknown
            busy_ns (int64, ns): time in which it runs something
            share (float64): busy part of the time between first and last work of the GPU, 0 to 1
            alone_ns (int64, ns): time in which it runs something and no other stream of the GPU does
            kernels (int64): kernels that ran on it
            kernel_ns (int64, ns): sum of their durations
            copies (int64): copies and sets of memory on it
            copy_ns (int64, ns): sum of their durations
            first_ns (int64, ns): start of its first work
            last_ns (int64, ns): end of its last work
        """

    def unfinished(self) -> Table:
        """Which collective or message does a job hang in, and which rank has not come to it?

        Show for each process group the first collective that is not complete on all ranks, and who has not
        called it.

        For dumps of PyTorch's flight recorder (`nccl_trace_rank_N`) of all ranks. One row per rank of the
        group: what it called, in which line, and its state: scheduled (called), started (runs on the GPU)
        or completed, as far as PyTorch had noticed. `not called`: its last entry in the group is an earlier
        one; `last_call` is the last thing that it called in any group. `no dump`: nothing is known of the
        rank. `overwritten`: it called later ones, and its buffer no longer has this one. difference: what
        is not as most ranks called it (of equally many, as the lowest rank): operation, size, dtype;
        missing where the rank has not called it. Sizes and types are compared by the rules of PyTorch's own
        analyser (torch.distributed.flight_recorder). Of messages: the first send or receive of each pair of
        ranks that is not complete. Operations come first whose missing ranks wait in no other one: the
        others may wait for them. Of gloo, an operation is complete when its entry is no longer in use; that
        is all that gloo notes.

        Columns:
            group (string): name of the process group
            description (string): what the group is for
            sequence (int64): number of the operation in the group (of a message: on its rank)
            rank (int64): rank of the group
            state (string): scheduled, started, completed, not called, no dump, overwritten
            difference (string): missing, operation, size, dtype; empty where it is as on most ranks
            operation (string): what it called, null where it did not
            in_shapes (string): shapes of what it put in, as JSON
            out_shapes (string): shapes of what it gets out, as JSON
            dtype (string): types of what it put in, as JSON
            called_at (string): function and line of the program that called it, or its last call
            last_call (string): of a rank that did not call it: its last call in any group
            called_ns (int64, ns): when it called that
            location (uint32): where the span of that call is
            row (int64): number of its span there
        """

    def utilisation(self) -> Table:
        """How much of each GPU was used: busy, SMs filled, warps there, work done?

        Show how much of each GPU was used, from the first start to the last end of its work.

        When kernels ran is known of all steps; what folded ones launched counts with the launches that the
        same kernels have in detail.

        busy = part of the time in which some kernel ran (what `nvidia-smi` calls utilisation). SMs filled =
        the same, each kernel counting with the part of the multiprocessors that its blocks fill: min(blocks
        / multiprocessors, 1). warps there = each kernel counting with the warps that its launch can have at
        once, as a part of those that the GPU can hold: min(warps of all blocks / (multiprocessors * warps
        of one), theoretical occupancy). Kernels that run at the same time add up, to no more than the rung
        before. The largest loss between two rungs is where to begin: launch sooner (idle), launch more
        blocks (SMs), use fewer registers, less shared memory, other blocks (warps). These are upper bounds:
        `strobe devices` has what the GPU measured itself, `strobe metrics` what single kernels did.

        roofline = part of the time that the work would take at least, each kernel as long as the GPU needs
        at its peak to compute (FLOPs) or to move (bytes of device memory) what it does, whichever is
        longer, and no longer than it took. What it does is known from hardware counters, where `strobe
        metrics --metrics roofline --trace TRACE` kept them beside the trace (means over the launches that
        were measured, by the kernel's full name), else from the shapes of the matrix product, convolution
        or attention that launched it: FLOPs, and each operand and result moved once. Peaks follow from the
        GPU's own clock and bandwidth, else from its data sheet. Of other kernels nothing is known, and
        nothing is assumed: roofline known = part of the time of kernels (each with its duration) that the
        estimate is about, and roofline is a lower bound where that is below 1. Null where nothing is known.
        A kernel may be near the roofline with few warps, so that this rung may be above the one of warps.

        Columns:
            rank (int64): rank of the process, null if it has none
            process (uint32): process that used the GPU
            device (int64): number of the GPU, null if unknown
            duration_ns (int64, ns): first start to last end of its work
            busy_share (float64): part of it in which some kernel ran, 0 to 1
            sms_filled_share (float64): with the multiprocessors that blocks filled; null: unknown GPU
            warps_there_share (float64): with the warps that could be there; null: unknown GPU
            roofline_share (float64): that its work takes at least at the GPU's peak, as far as known
            roofline_known_share (float64): part of the kernels' time that this is known of, 0 to 1
            lost (string): where most is lost: idle, SMs, or warps
            kernels (int64): kernels that ran
        """

    def waits(
        self,
        *,
        by: Literal["state", "function", "call", "rank", "thread", "step", "pair", "kernel", "all", "wait"] = "state",
    ) -> Table:
        """Who waited for whom, how long, and in which call?

        Sum the waits of every rank by what it waited for, by Scalasca's definitions, in every step of the
        run.

        E and L are the enter and the leave of a call. No wait is longer than its call. late_sender: a call
        that completes a receive, or a blocking probe, waits until the send begins: min(E of the send, L) -
        E. A call that completes several has the longest. wrong_order: the part of late_sender whose message
        was sent after one that was received later. late_receiver: a blocking send, or a call that completes
        one, is over only after the receive was asked for, and waits until then. wait_at_barrier: until the
        last has come. wait_at_nxn: the same where all need all (all-reduce, all-gather, reduce-scatter,
        all-to-all), and among neighbours for those that send to it. barrier_completion, nxn_completion:
        from when the first has left to its own leave. late_broadcast: until the root comes (broadcast,
        scatter). early_reduce: the root waits for the last that sends it something (reduce, gather).
        early_scan: for the last of those before it. late_collective: a call that completes a collective
        that does not block waits for the last rank that asks for it. Kernels of NCCL and its like, which
        spin until all have come, and collectives of gloo wait in the same way.

        One-sided communication: wait_at_fence: until the last rank of the window has come. late_post: the
        call of an origin (MPI_Win_start, an access, MPI_Win_complete) in which its target calls
        MPI_Win_post waits until then. early_wait: MPI_Win_wait waits for the last MPI_Win_complete to
        begin. late_complete: the part of early_wait after the last access of that origin. lock_contention:
        MPI_Win_lock waits while others hold the same target in a way that excludes it, from the end of
        their MPI_Win_lock to the end of their MPI_Win_unlock.

        Threads of a process (--by thread), exact also in steps that were folded. Of OpenMP: thread_barrier:
        until the last thread of the team has come to the barrier, less the tasks that the waiting one runs
        meanwhile. lock_contention: until the thread that had the lock, or was in the critical section,
        leaves it. no_task: a thread at a barrier, or that waits for tasks, has none to run while others of
        its team run theirs. The awaited thread ran the last one. idle_worker: a worker between two parallel
        regions waits for the thread that works there. Of pthreads, in programs without Python:
        lock_contention (mutexes and read-write locks), condition_wait, semaphore_wait, thread_join and
        thread_barrier are the time in the call. The awaited thread has the lock when the wait begins,
        signalled the condition or posted the semaphore last, is joined, or came to the barrier last. Waits
        of less than 50 us that follow each other within 1 ms are one row of --by wait.

        GPUs: late_gpu: a call that synchronises, or a copy that is done before its call returns, waits for
        the end of the last work of the GPU that it needs: min(end of that work, L) - E, for a copy without
        the time before it in which its stream did nothing. Which work that is, the critical path decides by
        the same rule. late_stream: a stream waits for an event of another one: from when its next work was
        launched, and the work before that was over, until the end of the last work that was launched before
        the event was recorded, where the trace has the events. The kernel is what was waited for, on the
        stream that is awaited_thread. late_host: a GPU that is done with all that it had begun does nothing
        until a thread launches what it does next. All of them are known where the GPU has its spans, not in
        steps that were folded.

        Calls that only test do not wait. Messages and collectives of steps that were folded are counted as
        all others. What is shorter than twice the error of the two clocks is not told apart from none: it
        is in uncertain_ns. With --by wait, the million longest waits are shown, and how many others there
        are is in the note. Locks that are asked for only by the first access, and waits for the target to
        come to MPI at all, are not known.

        Options:
            by: One row per wait state, function, call path, rank, thread, step, pair of ranks, kernel, all
                of these, or single wait.

        Columns:
            start_ns (int64, ns): when the call began that waited [by=wait]
            state (string): what it waited for: see above
            rank (int64): rank of the process, null if it has none [by=rank or thread or pair or all or
                wait]
            awaited_rank (int64): whom it waited for, if for one [by=pair or all or wait]
            thread (string): the thread that waited [by=thread or all or wait]
            awaited_thread (string): the thread that it waited for, null where that is not known [by=thread
                or all or wait]
            step (int64): number of the step in its process [by=step or all or wait]
            function (string): what waited [by=function or call or kernel or all or wait]
            place (string): the function of Python in it: file and first line [by=call or all]
            kernel (string): the work of a GPU that it waited for [by=kernel or all or wait]
            call_path (string): what waited, and what called it, a `<` between [by=call or all or wait]
            wait_ns (int64, ns): waits that are longer than twice the error of the clocks
            waits (int64): how many these are
            max_ns (int64, ns): the longest of them [by=state or function or call or rank or thread or step
                or pair or kernel or all]
            uncertain_ns (int64, ns): shorter ones, which may be none
            partial (int64): waits in collectives of which the trace lacks a rank [by=state or function or
                call or rank or thread or step or pair or kernel or all]
            clipped (int64): waits that end with their call, though what they wait for came later [by=state
                or function or call or rank or thread or step or pair or kernel or all]
            location (uint32): where the longest one waited
            time_ns (int64, ns): when the call of the longest one began

        Raises:
            UsageError: where an option has no such choice.
        """

    def what_if(
        self,
        *,
        change: str = "",
        by: Literal["class", "stretch", "change"] = "class",
        rank: str = "all",
    ) -> Table:
        """How long would a step take if something in it took another time?

        Replay usual steps, with a change and without. A step is the graph of the critical path: threads,
        streams of GPUs, launches, synchronisation, messages and collectives of all ranks. A replay keeps
        the time of each piece of work and what waits for what; launches, gaps and returns in between take
        their usual time (the median of the stretch), and time that nothing accounts for is left out. What
        the replay of the unchanged steps lacks of the recorded time, or has beyond it, is its error. Where
        the GPU is behind the host, up to four consecutive steps are one stretch.

        The times of the row are scaled from the steps that are replayed to the mean of all usual ones of
        the run (steady, of the most frequent class, no outliers). With `by=stretch` they are as recorded.

        A change: PATTERN=FACTOR multiplies the time of what runs in regions of a name, or of a kind (host,
        data, launch, queue, computation, communication, copy, sync): 'gemm*=0.5'; a factor that is not sure
        is a range: 'gemm*=0.4..0.6'. Or a word: no-launch (work of GPUs needs no launch of its own, as in a
        graph), no-sync (no call waits for a GPU), async-copies (no call waits for a copy), no-copies (they
        take no time), no-straggler (what a rank calls takes what the median of the ranks takes for it).
        Several with commas. Others come with a range of their own:

        half: what computes in float32 on a GPU computes in 16 bits: products by the ratio of the peaks, the
        rest by its bytes. fuse=PATTERN: elementwise kernels that follow each other, in what the pattern
        matches, are one, which takes as long as the longest of them (at worst, and half of the others).
        merge=PATTERN: so are equal matrix products; tails of their grids are saved at most, down to the
        roofline. overlap: collectives run beside computation (at worst the last of a step does not).
        ranks=2x: so many times the ranks, each with the work of one now; collectives take longer (from
        their bytes to the steps of a ring), and their last rank comes later. workers=4, prefetch=4: the
        batches of a DataLoader as a queue, served by so many workers, each so many ahead, as long as there
        are cores; alone. Where the trace does not show what comes of a change, there is no row, and a
        sentence why.

        by=change without a change: those that may gain something in these steps, the best first; what is
        changed is what their critical path goes through, and the loader.

        The gain is an interval: the range of the factors, widened by the error of the replay (the largest
        of the stretches, as a part of the new time) and by how much the stretches differ (1.96 standard
        errors), added as squares. A gain below 1 % of a step, or below three median deviations of the
        stretches by the root of their number, counts as none. No gain of waits (data, sync, communication,
        workers, prefetch) is longer than these.

        Options:
            change: What changes: 'nccl*=0.5', 'gemm*=0.4..0.6,no-sync'. Default: nothing.
            by: One row of all stretches, one per stretch of steps, or one per change that may gain
                something here.
            rank: all: all ranks together; or the number of a rank.

        Columns:
            change (string): what changes, as `change` takes it [by=change]
            class (string): class of the steps
            step (int64): first step of the stretch [by=stretch]
            steps (int64): steps that were replayed
            recorded_ns (int64, ns): how long a step took, until its last work on a GPU was done
            replayed_ns (int64, ns): how long its replay takes without a change
            error (float64): by how much a replay is off, as a part of the recorded time: the mean
            largest_error (float64): the largest of these of all stretches [by=class or change]
            predicted_ns (int64, ns): how long a step takes with the change: the middle of its factors
            gain_ns (int64, ns): how much shorter it is than the replay; negative: longer
            gain_low_ns (int64, ns): at least so much; 0 where that is within the error [by=class or change]
            gain_high_ns (int64, ns): at most so much [by=class or change]

        Raises:
            UsageError: where the trace has no such rank, or `change` is not a change of something in the
                steps; or where an option has no such choice.
        """

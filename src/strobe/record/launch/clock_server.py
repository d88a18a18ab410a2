"""Tells the time of the trace to processes of other nodes: a thread of `strobe run`, beside the measured program.

Who asks (native/core/system/node_clock.cpp) sends a datagram of 32 bytes; the answer is as long: when the question
came and when the answer left, on the clock of this node. Questions without the 16 characters of the run get no answer.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from contextlib import suppress

_FILE = "clock-server"
_QUESTION = struct.Struct("<4sI16sQ")
_ANSWER = struct.Struct("<4sIqqQ")
# Of a network that does not exist: nothing is sent, the kernel only says from which address it would be.
_ELSEWHERE = ("192.0.2.1", 9)


def start(folder: str) -> str:
    """Answer questions until this process ends; return who is to be asked, as `Session.clock` has it.

    Ranks that have a `strobe run` of their own find it in the folder. "" where there is no network.
    """
    from strobe.native import core

    try:
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.bind(("", 0))
    except OSError:
        return ""
    proof = os.urandom(8).hex()
    # A signal to this process is for its main thread, which waits for it: threads inherit what is blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        threading.Thread(target=_serve, args=(link, proof.encode()), name="strobe clock", daemon=True).start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    host = os.uname().nodename
    server = " ".join([str(link.getsockname()[1]), proof, core.node_name(), *_own_addresses(host)])
    path = os.path.join(folder, _FILE)
    with suppress(OSError), open(path + ".tmp", "x", encoding="ascii") as file:
        file.write(f"{host}\n{server}")
        os.replace(path + ".tmp", path)
    return server


def of(folder: str) -> str:
    """Return who is to be asked, as the `strobe run` of the first rank wrote it down; "" where it did not."""
    for _ in range(100):  # the first rank makes the folder, and then starts
        try:
            with open(os.path.join(folder, _FILE), encoding="ascii") as file:
                host, server = file.read().split("\n")
            break
        except (OSError, ValueError):
            time.sleep(0.02)
    else:
        return ""
    words = server.split()
    named = [address for address in _named(host) if address not in words[3:]]
    return " ".join([*words[:3], *named, *words[3:]])


def stop(folder: str) -> None:
    """Nobody will ask any more."""
    with suppress(OSError):
        os.unlink(os.path.join(folder, _FILE))


def _serve(link: socket.socket, proof: bytes) -> None:
    while True:
        try:
            question, asker = link.recvfrom(_QUESTION.size + 1)
            received = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            if len(question) != _QUESTION.size:
                continue
            magic, number, proven, _ = _QUESTION.unpack(question)
            if magic == b"SCLQ" and proven == proof:
                sent = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                link.sendto(_ANSWER.pack(b"SCLA", number, received, sent, 0), asker)
        except OSError:  # an asker that has gone
            time.sleep(0.001)


def _own_addresses(host: str) -> list[str]:
    found = []
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(_ELSEWHERE)
        found.append(str(probe.getsockname()[0]))
    found += [address for address in _named(host) if address not in found]
    return [*found, "127.0.0.1"][:4]


def _named(host: str) -> list[str]:
    """What the name of a host stands for, without its own loop: to another node that is somebody else."""
    try:
        addresses = socket.gethostbyname_ex(host)[2]
    except OSError:
        return []
    return [address for address in addresses if not address.startswith("127.")][:2]

"""Gives the time of the trace to processes of other nodes: a thread of `strobe run`, beside the measured program.

A process (native/core/system/node_clock.cpp) sends a datagram of 32 bytes. The answer is as long: when the question
came and when the answer left, on the clock of this node. Questions without the 16 characters of the run get no answer.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

_FILE = "clock-server"
_QUESTION = struct.Struct("<4sI16sQ")
_ANSWER = struct.Struct("<4sIqqQ")
# In a network that does not exist: nothing is sent, but the kernel chooses the address to send from.
_ELSEWHERE = ("192.0.2.1", 9)


def start(folder: str) -> str:
    """Answer questions until this process ends; return the server's address, as in `Session.clock`.

    Ranks that have a `strobe run` of their own find it in the folder. "" without a network.
    """
    from strobe.native import core

    try:
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.bind(("", 0))
    except OSError:
        return ""
    proof = os.urandom(8).hex()
    start_thread(partial(_serve, link, proof.encode()), "strobe clock")
    host = os.uname().nodename
    server = " ".join([str(link.getsockname()[1]), proof, core.node_name(), *_own_addresses(host)])
    path = os.path.join(folder, _FILE)
    with suppress(OSError), open(path + ".tmp", "x", encoding="ascii") as file:
        file.write(f"{host}\n{server}")
        os.replace(path + ".tmp", path)
    return server


def written_address(folder: str) -> str:
    """Return the server's address as the `strobe run` of the first rank wrote it; "" if it did not."""
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
    """Remove the address: the program has ended."""
    with suppress(OSError):
        os.unlink(os.path.join(folder, _FILE))


def start_thread(run: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread beside the one that waits for the program, and let that one have all signals."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # threads inherit what is blocked
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return thread


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
    """Return the addresses of a host, without 127.*: those mean another host elsewhere."""
    try:
        addresses = socket.gethostbyname_ex(host)[2]
    except OSError:
        return []
    return [address for address in addresses if not address.startswith("127.")][:2]

"""NVTX ranges with domains, categories, colours and payloads; the loop is sampled and has steps that are folded."""

import time

import nvtx

import strobe

domain = "solver"


def busy(ns):
    until = time.perf_counter_ns() + ns
    count = 0
    while time.perf_counter_ns() < until:
        count += 1
    return count


def step(number):
    with nvtx.annotate("assemble", color="green", domain=domain, category="matrix", payload=number):
        busy(1_500_000)
    with nvtx.annotate("solve", color=0xFF3366, payload=number / 4):
        busy(2_500_000)
    started = nvtx.start_range("asynchronous", color="blue")
    nvtx.mark("checked", payload=number)
    busy(300_000)
    nvtx.end_range(started)


for number in range(120):
    strobe.step()
    step(number)

#!/usr/bin/env python3
"""check.py PROGRAM   the model of many cores: equal runs are equal, and on two cores it shows what is
known of one depot and of a shard for each thread."""

import json
import subprocess
import sys
import tempfile

SHORT = ["--warm-microseconds", "300", "--microseconds", "300"]


def rows_of(program, *arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([program, "--json", file.name, *SHORT, *arguments], check=True,
                       stdout=subprocess.DEVNULL)
        return json.load(file)


def row_of(program, workload, subject, threads, seed=1):
    rows = rows_of(program, "--only", workload, "--subject", subject, "--threads", str(threads),
                   "--seed", str(seed))
    found = [r for r in rows if r["workload"] == workload]
    assert len(found) == 1, f"{workload} {subject} at {threads}: {len(found)} rows"
    return found[0]


def check_equal_runs(program):
    """The result depends on the costs and the seed, and on nothing else."""
    few = ["--threads", "3", "--subject", "tenure"]
    first = rows_of(program, *few)
    assert first == rows_of(program, *few), "two equal runs differ"
    assert first != rows_of(program, *few, "--seed", "2"), "another seed changes nothing"
    assert first != rows_of(program, *few, "--set", "transfer=500"), "a cost changes nothing"


def check_two_cores(program):
    """Through one depot the objects' lines go from core to core; a shard keeps them."""
    alone = row_of(program, "own-batch-4096", "tenure-one-depot", 1)
    depot = row_of(program, "own-batch-4096", "tenure-one-depot", 2)
    shards = row_of(program, "own-batch-4096", "tenure-shards-1", 2)
    lock = row_of(program, "own-batch-4096", "spinlock", 2)
    assert alone["fetches"] == 0, f"{alone['fetches']} lines from a core that does not exist"
    assert depot["fetches"] > 0.5, f"only {depot['fetches']} lines per operation through one depot"
    assert shards["fetches"] < 0.05, f"{shards['fetches']} lines per operation with a shard each"
    assert depot["ns_per_op"] > 1.1 * shards["ns_per_op"], "one depot costs no more than shards"
    assert lock["ns_per_op"] > 5 * depot["ns_per_op"], "a lock for each object is as cheap as a depot"


def check_one_shard(program):
    """One shard for all threads is one depot again: only the places of some words differ. Which thread
    comes first at a lock differs too, by the seed."""
    seeds = range(1, 7)
    for workload in "own-batch-4096", "handoff-120":
        depots = [row_of(program, workload, "tenure-one-depot", 4, seed) for seed in seeds]
        shards = [row_of(program, workload, "tenure-shards-1/4", 4, seed) for seed in seeds]
        for field in "ns_per_op", "fetches", "exchanges":
            ratio = sum(row[field] for row in shards) / sum(row[field] for row in depots)
            assert 0.9 < ratio < 1.1, f"{workload}: {field} of one shard is {ratio:.3f} of one depot's"


def main():
    program = sys.argv[1]
    for check in check_equal_runs, check_two_cores, check_one_shard:
        check(program)
        print(check.__name__, "holds")


main()

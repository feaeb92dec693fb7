"""The program that test/faults/run.sh runs."""

import argparse
import random
import re
import sys
import time
import traceback
import types

import psycopg

from . import nemeses, plants
from .aggregates import Aggregates
from .append import Append
from .bank import Bank
from .claim import Claim
from .cluster import Broken
from .fork import Fork
from .run import Run, evidence, report
from .sets import Sets
from .skew import Skew

WORKLOADS = {workload.name: workload for workload in (Bank, Fork, Sets, Append, Claim, Aggregates, Skew)}


def chosen(parser, what, wanted, all_of_them):
    names = re.split(r"[\s,]+", wanted.strip()) if wanted.strip() else list(all_of_them)
    for name in names:
        if name not in all_of_them:
            parser.error(f"no such {what}: {name} (there are {' '.join(all_of_them)})")
    return names


def arguments():
    parser = argparse.ArgumentParser()
    for name in "work", "bin", "user", "results", "engines", "memory":
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--namespaces", default="", help="a=NAME b=NAME")
    parser.add_argument("--addresses", default="", help="of a, b, and of each for the other")
    parser.add_argument("--faketime", default="")
    parser.add_argument("--more-conf", default="")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--seed", default="")
    parser.add_argument("--workloads", default="")
    parser.add_argument("--nemeses", default="")
    parser.add_argument("--plants", action="store_true")
    parser.add_argument("--tsv", default="")
    args = parser.parse_args()

    pairs = [pair.split("=") for pair in args.namespaces.split()]
    args.env = types.SimpleNamespace(
        work=args.work, bin=args.bin, user=args.user, results=args.results, engines=args.engines.split(),
        memory=args.memory, port=args.port, namespaces=dict(pairs), faketime=args.faketime, more_conf=args.more_conf,
        addresses={name.replace("-for-", " for "): address for name, address in
                   (pair.split("=") for pair in args.addresses.split())},
    )
    possible, lacking = nemeses.available(args.env)
    args.nemeses = chosen(parser, "nemesis", args.nemeses, nemeses.ALL)
    for name in list(args.nemeses):
        if name in lacking:
            print(f"# NOT RUN: {name}: {lacking[name]}")
            args.nemeses.remove(name)
    args.workloads = chosen(parser, "workload", args.workloads, WORKLOADS)
    args.seed = args.seed or str(random.SystemRandom().randrange(10**9))
    return args


def write_tsv(name, pairs):
    if name:
        with open(name, "w") as out:
            for label, value in pairs:
                print(label, value, sep="\t", file=out)


def main():
    args = arguments()
    print(f"# SEED={args.seed} WORKLOADS=\"{' '.join(args.workloads)}\" NEMESES=\"{' '.join(args.nemeses)}\"", flush=True)
    run = Run(args.env, args.seed, [WORKLOADS[name] for name in args.workloads])
    began = time.monotonic()
    noticed, missed, results = 0, 0, []
    try:
        run.begin()
        if args.plants:
            noticed, missed, results = plants.selftest(run)
        else:
            run.cycles(args.seconds, args.nemeses)
    except (Broken, psycopg.Error):
        run.breaks_off(traceback.format_exc())
    run.finish()
    if args.plants:
        write_tsv(args.tsv, results)
        # the logs tell of what was planted, too
        print(f"{noticed} passed, {missed + run.broken_off} failed")
        return 1 if missed or run.broken_off or not noticed else 0
    if args.seconds >= 60 and not run.broken_off and run.unused():
        run.differs("the run", f"nobody has scanned {', '.join(run.unused())}")
    seconds = time.monotonic() - began
    report(run, seconds)
    write_tsv(args.tsv, evidence(run, seconds))
    if run.differences or run.broken_off:
        run.keep()
    return 1 if run.differences or run.broken_off or not run.done else 0


sys.exit(main())

"""Does the checker notice?  Plants each wrong answer that a workload knows, and waits for it."""

import time

from .session import Session


def selftest(run, seconds=10):
    """Returns how many plants were noticed, and how many not."""
    noticed = missed = 0
    engine = run.engine()
    # by pairs, for the wrong state of one must be gone before the next one
    for workload in list(run.workloads):
        for name in workload.plants():
            again(run, workload, engine)
            time.sleep(2)
            run.calm()
            if run.differences:
                run.say(f"before {name} was planted there was a difference")
                return noticed, missed + 1
            run.now = f"plant: {name}"
            session = Session(run, "primary", "plant")
            session.ensure()
            # the workload was made anew, so its plants are, too
            current(run, workload).plants()[name](session)
            session.close()
            end = time.monotonic() + seconds
            while time.monotonic() < end and not run.differences:
                time.sleep(0.1)
            by = "clients"
            if not run.differences:
                by = "the comparison at rest"
                run.calm()
            if any(workload.name in f"{where} {what}" for where, what in run.differences):
                noticed += 1
                print(f"ok - {workload.name}: {name}, noticed by {by}", flush=True)
            else:
                missed += 1
                print(f"not ok - {workload.name}: {name}", flush=True)
            run.differences.clear()
    return noticed, missed


def current(run, workload):
    return next(w for w in run.workloads if w.name == workload.name)


def again(run, workload, engine):
    """The workload begins anew, with other tables and an oracle that knows nothing."""
    run.pause()
    run.differences.clear()
    old = current(run, workload)
    new = type(old)(run)
    run.workloads[run.workloads.index(old)] = new
    for statement in new.drop() + new.schema(engine) + ["ANALYZE"]:
        run.cluster.primary.sql(statement)
    run.cluster.caught_up()
    for worker in run.workers:
        if worker.workload is old:
            worker.workload = new
    run.resume()

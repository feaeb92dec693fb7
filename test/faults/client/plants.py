"""Does the checker notice?  Plants each wrong answer that a workload knows, and waits for it."""

import time

from .session import Session


def selftest(run, seconds=10):
    """Returns how many plants were noticed, how many not, and what became of each."""
    noticed = missed = 0
    results = []
    engine = run.engine()
    for workload in list(run.workloads):
        for name in workload.plants():
            again(run, engine)
            time.sleep(2)
            run.calm()
            if run.differences:
                run.say(f"before {name} was planted there was a difference")
                return noticed, missed + 1, results
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
                result = f"noticed by {by}"
            else:
                missed += 1
                result = "NOT NOTICED"
            print(f"{'ok' if result != 'NOT NOTICED' else 'not ok'} - {workload.name}: {name}, {result}", flush=True)
            results.append((f"{workload.name}: {name}", result))
            run.differences.clear()
    return noticed, missed, results


def current(run, workload):
    return next(w for w in run.workloads if w.name == workload.name)


def again(run, engine):
    """All begin anew, with other tables and oracles that know nothing."""
    run.pause()
    run.differences.clear()
    for at, old in enumerate(run.workloads):
        new = run.workloads[at] = type(old)(run)
        for statement in new.drop() + new.schema(engine):
            run.cluster.primary.sql(statement)
        for worker in run.workers:
            if worker.workload is old:
                worker.workload = new
    run.cluster.primary.sql("ANALYZE")
    run.cluster.caught_up()
    run.resume()

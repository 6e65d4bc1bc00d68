"""Times functions that launch GPU work, one of them "ours", in interleaved rounds by PyTorch."""
import math
import statistics

try:
    import torch
except ImportError:
    torch = None

FLUSH_BYTES = 256 << 20
WARM_UP, FEWEST_ROUNDS, MOST_ROUNDS, ENOUGH_US = 3, 30, 200, 1e6
# Cycles that the GPU is held for while a round is queued: about 2 ms, at most 35.
HOLD, LONGEST_HOLD = 1 << 22, 1 << 26
GRAPH_RUNS, GRAPH_MOST_US = 20, 500  # longer problems do not wait for the host


def interval(samples):
    """The 95 % confidence interval of the median from order statistics, as autotune takes it."""
    ordered, n = sorted(samples), len(samples)
    spread = 1.96 * math.sqrt(n) / 2
    lo, hi = math.floor((n - 1) / 2 - spread), math.ceil((n - 1) / 2 + spread)
    return [ordered[max(lo, 0)], ordered[min(hi, n - 1)]]


def one_round(contenders, order, marks, prepare, hold):
    """Queues all while the GPU is held, and waits; whether it was held until all was queued."""
    torch.cuda._sleep(hold)
    for name in order:
        prepare(name)
        marks[name][0].record()
        contenders[name]()
        marks[name][1].record()
    held = not marks[order[0]][0].query()
    torch.cuda.synchronize()
    return held


def rounds(contenders, prepare, runs=1):
    """Microseconds of each contender, by round; all run in each, in turn. A round in which the GPU
    may have waited for the host does not count, and the next is held for longer."""
    marks = {name: [torch.cuda.Event(enable_timing=True) for _ in range(2)] for name in contenders}
    times, order, hold = {name: [] for name in contenders}, list(contenders), HOLD
    spent = late = 0
    for _ in range(WARM_UP):
        one_round(contenders, order, marks, prepare, hold)
    while True:
        done = len(times["ours"])
        if done >= MOST_ROUNDS or (done >= FEWEST_ROUNDS and spent >= ENOUGH_US):
            return times
        order.append(order.pop(0))
        if not one_round(contenders, order, marks, prepare, hold):
            hold = min(2 * hold, LONGEST_HOLD)
            late += 1
            if late > MOST_ROUNDS:
                raise RuntimeError("the host is too slow to keep the GPU busy")
            continue
        for name, (start, stop) in marks.items():
            us = start.elapsed_time(stop) * 1000
            times[name].append(us / runs)
            spent += us


def cold_rounds(contenders):
    """With nothing of theirs in the L2, and no dirty lines either."""
    flush = torch.zeros(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    out = torch.zeros((), dtype=torch.int32, device="cuda")
    return rounds(contenders, lambda name: torch.amax(flush, dim=0, out=out))


def captured(run):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(GRAPH_RUNS):
            run()
    return graph


def graph_rounds(contenders):
    """As captured CUDA graphs of some runs each, right behind a run of the same."""
    graphs = {name: captured(run) for name, run in contenders.items()}
    replays = {name: graph.replay for name, graph in graphs.items()}
    return rounds(replays, lambda name: replays[name](), GRAPH_RUNS)


def against(times, name):
    """Another's times in multiples of ours."""
    ratios = [theirs / ours for theirs, ours in zip(times[name], times["ours"])]
    return {"median_us": statistics.median(times[name]), "ratio": statistics.median(ratios),
            "ci95": interval(ratios)}


def summary(times):
    return {"ours_us": statistics.median(times["ours"]), "rounds": len(times["ours"]),
            "others": {name: against(times, name) for name in times if name != "ours"}}

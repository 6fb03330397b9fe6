"""Every solved notebook as other processors would run it, compared with what it printed here.

Under each setting NumPy, OpenBLAS, torch, oneDNN and MKL take kernels that they would not take by
themselves, so that sums are rounded otherwise; whether they are is looked at first. One process a
setting (the variables must be set before the libraries load) forks a child for each notebook.

Run it as ``python -m tests.other_processors``; ``--claims 30`` also runs the notebooks as they
are, and lists the 30 claims of all assertions that came nearest to their bounds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.solved_notebook import Claim, Ran, run

ROOT = Path(__file__).resolve().parent.parent

#: NumPy's names of what came after SSE4.2, and of what came after AVX2; older and newer names.
AVX512 = ("AVX512", "X86_V4")


@dataclass(frozen=True)
class Setting:
    """What the libraries are told before they load, and the threads torch gets."""

    name: str
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    threads: int = 1


def settings() -> list[Setting]:
    """The settings of this machine: only features that it has can be switched off."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    found = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    newest = [name for name in found if name.startswith(AVX512)]
    return [
        Setting(
            "oldest kernels",
            {
                "ATEN_CPU_CAPABILITY": "default",
                "NPY_DISABLE_CPU_FEATURES": " ".join(found),
                "OPENBLAS_CORETYPE": "Prescott",
                "ONEDNN_MAX_CPU_ISA": "SSE41",
                "MKL_CBWR": "COMPATIBLE",
                "OPENBLAS_NUM_THREADS": "1",
            },
        ),
        Setting(
            "AVX2 kernels",
            {
                "ATEN_CPU_CAPABILITY": "avx2",
                "NPY_DISABLE_CPU_FEATURES": " ".join(newest),
                "OPENBLAS_CORETYPE": "Haswell",
                "ONEDNN_MAX_CPU_ISA": "AVX2",
                "MKL_ENABLE_INSTRUCTIONS": "AVX2",
                "OPENBLAS_NUM_THREADS": "1",
            },
        ),
        # The processes share two cores: threads that wait must not spin.
        Setting("two threads", {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "2"}, 2),
    ]


PLAIN = Setting("plain")


@dataclass
class Under:
    """What came of the notebooks under one setting.

    Attributes:
        probe: a digest of each of a few small computations, by name.
        ran: the notebooks, in the order in which they were given.
    """

    probe: dict[str, str]
    ran: list[Ran]


def under(setting: Setting, notebooks: Sequence[Path], workers: int = 1) -> Under:
    """Run solved notebooks under a setting, in processes of their own."""
    order = {"threads": setting.threads, "workers": workers, "notebooks": [*map(str, notebooks)]}
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.other_processors", "--serve"],
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**environment, **setting.environment},
        check=True,
    )
    reply = json.loads(done.stdout)
    ran = [Ran(**{**one, "claims": [Claim(**c) for c in one["claims"]]}) for one in reply["ran"]]
    return Under(reply["probe"], ran)


def _serve() -> None:
    """Do one order from the standard input, and answer it on the standard output."""
    order = json.load(sys.stdin)
    # What a notebook prints past its shell is not the answer.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # All that the notebooks import, once.
    import seaborn  # noqa: F401
    import torch
    import torch._dynamo
    from matplotlib.figure import Figure

    from lesson_kit import figures

    # Pictures are not compared: the plain run paints them.
    Figure.savefig = lambda *_, **__: None  # type: ignore[method-assign]
    figures.in_few_colours = lambda png: png
    set_num_threads = torch.set_num_threads
    set_num_threads(order["threads"])
    if order["threads"] != 1:  # the lessons ask for one
        torch.set_num_threads = lambda _: set_num_threads(order["threads"])
    jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [(_probe, ())]
    jobs += [(run, (Path(name),)) for name in order["notebooks"]]
    probe, *ran = _each_in_a_fork(jobs, order["workers"])
    for place, name in enumerate(order["notebooks"]):
        if ran[place] is None:
            ran[place] = Ran(Path(name).stem, ["its process ended before the notebook did"])
    json.dump({"probe": probe, "ran": [asdict(one) for one in ran]}, answer)


def _each_in_a_fork(
    jobs: Iterable[tuple[Callable[..., Any], tuple[Any, ...]]], workers: int
) -> list[Any]:
    """The results of calls, each in a child of its own; None where the child died."""
    fork = multiprocessing.get_context("fork")
    results: dict[int, Any] = {}
    running: dict[Connection, tuple[int, Any]] = {}

    def call(function: Callable[..., Any], given: tuple[Any, ...], reply: Connection) -> None:
        reply.send(function(*given))

    def take() -> None:
        for end in wait(list(running)):
            number, child = running.pop(end)
            try:
                results[number] = end.recv()
            except EOFError:
                results[number] = None
            child.join()

    for number, (function, given) in enumerate(jobs):
        while len(running) >= workers:
            take()
        ours, theirs = fork.Pipe(duplex=False)
        child = fork.Process(target=call, args=(function, given, theirs))
        child.start()
        theirs.close()
        running[ours] = number, child
    while running:
        take()
    return [results[number] for number in sorted(results)]


def _probe() -> dict[str, str]:
    """A digest of some small computations: which of them come out with other digits."""
    import numpy as np
    import torch
    import torch.nn.functional as F

    random = np.random.default_rng(0)
    one, other = random.normal(size=(67, 131)), random.normal(size=(131, 61))
    left, right = torch.from_numpy(one).float(), torch.from_numpy(other).float()
    computed = {
        "NumPy matmul": one @ other,
        "NumPy matmul, float32": one.astype("f4") @ other.astype("f4"),
        "NumPy exp": np.exp(one),
        "torch matmul": left @ right,
        "torch matmul, float64": torch.from_numpy(one) @ torch.from_numpy(other),
        "torch softmax": left.softmax(-1),
        "torch layer_norm": F.layer_norm(left, (131,)),
        "torch gelu": F.gelu(left),
        "torch sum": torch.from_numpy(random.normal(size=200_000)).float().sum(),
    }
    return {
        name: hashlib.sha256(np.asarray(value).tobytes()).hexdigest()
        for name, value in computed.items()
    }


def moved(plain: dict[str, str], probe: dict[str, str]) -> list[str]:
    """The computations that came out with other digits."""
    return [name for name in plain if plain[name] != probe[name]]


def proves_nothing(changed: dict[str, list[str]]) -> str | None:
    """Why a run proves nothing, if no setting changed a digit of anything."""
    if any(changed.values()):
        return None
    return (
        f"none of {', '.join(changed)} changes a digit on this processor, so this run proves "
        "nothing; find settings that do, in tests/other_processors.py"
    )


def _told(setting: Setting, changed: list[str], here: Under) -> Iterator[str]:
    if changed:
        yield f"{setting.name}: other digits in {', '.join(changed)}"
    else:
        yield f"{setting.name}: no other digits on this processor; it proves nothing here"
    yield (
        f"    {len(here.ran)} notebooks, {sum(one.compared for one in here.ran)} outputs compared; "
        f"of those that are not compared {sum(one.moved for one in here.ran)} came out otherwise; "
        f"{sum(one.seconds for one in here.ran):.0f} s of processor time"
    )
    for one in here.ran:
        for fault in one.faults:
            yield f"    {one.notebook}, {fault}"


def nearest(runs: dict[str, Under], most: int) -> Iterator[str]:
    """The claims that came nearest to their bounds under any setting, the nearest first."""
    found: dict[tuple[str, int, str], dict[str, Claim]] = {}
    for name, here in runs.items():
        for one in here.ran:
            for claim in one.claims:
                found.setdefault((one.notebook, claim.cell, claim.text), {})[name] = claim
    # A bound on whole numbers that are counted or constant is no measurement.
    measured = {
        place: claims
        for place, claims in found.items()
        if any(one.left % 1 or one.right % 1 for one in claims.values())
    }
    by_room = sorted(measured, key=lambda key: min(one.room for one in measured[key].values()))
    for notebook, cell, text in by_room[:most]:
        claims = measured[notebook, cell, text]
        yield f"{min(one.room for one in claims.values()):6.1%}  {notebook}, cell {cell}: {text}"
        sides = (f"{name} {one.left:.4g} | {one.right:.4g}" for name, one in claims.items())
        yield f"        {'; '.join(sides)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell, and return 1 if an output or a claim depends on the processor."""
    parser = argparse.ArgumentParser(prog="python -m tests.other_processors")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of solutions/ else")
    parser.add_argument("--claims", type=int, default=0, metavar="N", help="list the N nearest")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="notebooks at a time under each setting"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.serve:
        _serve()
        return 0
    notebooks = [one.resolve() for one in given.notebooks]
    notebooks = notebooks or sorted((ROOT / "solutions").glob("*/*.ipynb"))
    plain = under(PLAIN, notebooks if given.claims else [], given.workers)
    runs: dict[str, Under] = {}
    changed: dict[str, list[str]] = {}
    # All settings at once: so no core waits while the last notebook of one of them runs.
    with ThreadPoolExecutor() as pool:
        here = [(one, pool.submit(under, one, notebooks, given.workers)) for one in settings()]
        for setting, running in here:
            ran = runs[setting.name] = running.result()
            changed[setting.name] = moved(plain.probe, ran.probe)
            print("\n".join(_told(setting, changed[setting.name], ran)), flush=True)
    if given.claims:
        print("Nearest to their bounds: the two sides' distance, of the larger one")
        print("\n".join(nearest({PLAIN.name: plain, **runs}, given.claims)))
    why = proves_nothing(changed)
    if why:
        print(why)
    return int(bool(why) or any(one.faults for here in runs.values() for one in here.ran))


if __name__ == "__main__":
    sys.exit(main())

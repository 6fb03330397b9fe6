"""The corpus of attacks: what dishonest, careless or broken submissions do, and their due.

Each attack is one notebook of the tiny lesson. Nothing in it is right unless its entry says
so: any point beyond ``points`` is undeserved. Code that tries to get at something prints
``GOT`` when it succeeds and ``TRIED`` when it is through; ``LEAK`` is what a hidden test's
input would look like to the student. The words are put together at run time, so that they are
not found in the source.
"""

from __future__ import annotations

import copy
import json
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.course.bundle import Bundle
from autograder.grade.limits import Limits
from autograder.notebooks import grade_id, is_answer, is_test

from ..submissions import as_bytes, notebook_with

FULL = {"double": 3.0, "quadruple": 4.0, "answer_size": 1.0}
NOTHING = {"double": 0.0, "quadruple": 0.0, "answer_size": 0.0}

#: An untouched answer is not even wrong; these are.
WRONG = {
    "double": "def double(x):\n    return 3 * x\n",
    "quadruple": "def quadruple(x):\n    return 5 * x\n",
    "answer_size": 'answer_size = "a"\n',
}

#: What the files outside of the box hold; no attack may read or change it.
SECRET = "the secret of the grader"
#: Files of this name must not turn up anywhere.
MARK = "left-behind-by-an-attack"

#: Enough for an honest cell on a busy machine; what never ends takes all of it.
QUICK = Limits(cell=5, test=4, notebook=120)

#: From a bundle and the folder outside that an attack may know of.
Make = Callable[[Bundle, Path], bytes]


@dataclass(frozen=True)
class Attack:
    """One submission that tries something.

    ``says``: part of the reason, of a message or of what a cell reports. ``tried``: one of its
    cells gets through and says so. ``confined``: only a sandbox stops it.
    """

    name: str
    tries: str
    make: Make
    points: dict[str, float] = field(default_factory=lambda: NOTHING)
    status: str = "graded"
    outcomes: dict[str, str] = field(default_factory=dict)
    says: str = ""
    tried: bool = False
    confined: bool = False
    limits: Limits = QUICK


CORPUS: list[Attack] = []


def add(name: str, tries: str, make: Make, **due: Any) -> None:
    CORPUS.append(Attack(name, tries, make, **due))


def code(text: str) -> str:
    return textwrap.dedent(text).strip() + "\n"


def edited(change: Callable[[NotebookNode, Bundle], None], **answers: str) -> Make:
    """A wrong notebook after ``change``."""

    def make(bundle: Bundle, outside: Path) -> bytes:
        notebook = notebook_with(bundle, {**WRONG, **answers})
        change(notebook, bundle)
        return as_bytes(notebook)

    return make


def answers(**instead: str) -> Make:
    """A wrong notebook with some answers replaced."""
    return edited(lambda notebook, bundle: None, **{k: code(v) for k, v in instead.items()})


def cell(text: str, *, right: bool = False, last: bool = False, **instead: str) -> Make:
    """A wrong (or right) notebook with one more cell: after the setup cell, or at the end."""

    def make(bundle: Bundle, outside: Path) -> bytes:
        given = {name: code(source) for name, source in instead.items()}
        notebook = notebook_with(bundle, given if right else {**WRONG, **given})
        source = code(text).replace("{outside}", str(outside)).replace("{mark}", MARK)
        notebook.cells.insert(len(notebook.cells) if last else 1, nbformat.v4.new_code_cell(source))
        return as_bytes(notebook)

    return make


def attempt(text: str, **more: Any) -> Make:
    """A cell whose statements each may fail; it says when it is through."""
    body = textwrap.indent(code(text), "    ")
    tail = "except BaseException as error:\n    print('refused:', type(error).__name__, error)\n"
    return cell(f"import os, sys, ctypes\ntry:\n{body}{tail}print('TRI' + 'ED')\n", **more)


def tags(*names: str) -> Callable[[NotebookNode, Bundle], None]:
    def change(notebook: NotebookNode, bundle: Bundle) -> None:
        for one in notebook.cells:
            one.metadata["tags"] = list(names)

    return change


# Metadata, tags, cells ---------------------------------------------------------------------

for _tag in ("skip-execution", "raises-exception", "demonstration", "setup", "remove-cell"):
    add(
        f"tag {_tag}",
        f"The tag {_tag} on every cell, so that tests are skipped or their errors expected.",
        edited(tags(_tag)),
    )


def _set_points(notebook: NotebookNode, bundle: Bundle) -> None:
    for one in notebook.cells:
        if is_test(one) or is_answer(one):
            one.metadata["nbgrader"]["points"] = 1000
            one.metadata["nbgrader"]["grade"] = True


def _empty_tests(notebook: NotebookNode, bundle: Bundle) -> None:
    for one in notebook.cells:
        if is_test(one):
            one.source = "pass"


def _without_tests(notebook: NotebookNode, bundle: Bundle) -> None:
    notebook.cells = [one for one in notebook.cells if not is_test(one)]


def _doubled_tests(notebook: NotebookNode, bundle: Bundle) -> None:
    notebook.cells += [copy.deepcopy(one) for one in notebook.cells if is_test(one)] * 3


def _retyped(kind: str) -> Callable[[NotebookNode, Bundle], None]:
    def change(notebook: NotebookNode, bundle: Bundle) -> None:
        for one in notebook.cells:
            if is_test(one):
                one.cell_type = kind
                one.pop("outputs", None)
                one.pop("execution_count", None)

    return change


def _tests_first(notebook: NotebookNode, bundle: Bundle) -> None:
    notebook.cells.sort(key=lambda one: not is_test(one))


def _swapped_ids(notebook: NotebookNode, bundle: Bundle) -> None:
    """The easy test under the name of the one with most points."""
    for one in notebook.cells:
        if grade_id(one) == "test_quadruple":
            one.source = 'check_answer("answer_size", answer_size)\n'
        if grade_id(one) == "test_answer_size":
            one.metadata["nbgrader"]["grade_id"] = "test_quadruple"


def _alien_kernel(notebook: NotebookNode, bundle: Bundle) -> None:
    notebook.metadata["kernelspec"] = {"name": "bash", "language": "bash", "display_name": "x"}
    notebook.metadata["nbgrader"] = {"points": 8, "score": 8}


def _gradebook_in_metadata(notebook: NotebookNode, bundle: Bundle) -> None:
    for one in notebook.cells:
        if is_test(one):
            one.metadata["nbgrader"] |= {"score": 8, "auto_score": 8, "checksum": "0" * 32}
            one["outputs"] = [nbformat.v4.new_output("stream", text="passed: 8 of 8 points")]


def _answer_ids_on_tests(notebook: NotebookNode, bundle: Bundle) -> None:
    for one in notebook.cells:
        if is_test(one):
            one.metadata["nbgrader"]["grade_id"] = "double"


add("points in metadata", "Gives its own cells 1000 points.", edited(_set_points))
add("tests emptied", "Test cells that only pass.", edited(_empty_tests), says="was edited")
add("tests deleted", "No test cells at all.", edited(_without_tests), says="is missing")
add("tests doubled", "Test cells stand four times.", edited(_doubled_tests), says="4 times")
add("tests as text", "Test cells made markdown.", edited(_retyped("markdown")))
add("tests as raw cells", "Test cells made raw.", edited(_retyped("raw")))
add("tests first", "Tests before the answers, so that nothing can fail.", edited(_tests_first))
add("grade_id swapped", "An easy test under the name of a dear one.", edited(_swapped_ids))
add("another kernel", "A kernelspec for bash.", edited(_alien_kernel))
add("scores in metadata", "Scores and old outputs in the cells.", edited(_gradebook_in_metadata))
add("tests named as answers", "Tests under an answer's name.", edited(_answer_ids_on_tests))


def _raw_file(data: bytes) -> Make:
    return lambda bundle, outside: data


def _with_tree(change: Callable[[dict[str, Any]], None]) -> Make:
    def make(bundle: Bundle, outside: Path) -> bytes:
        tree = json.loads(as_bytes(notebook_with(bundle, WRONG)))
        change(tree)
        return json.dumps(tree).encode()

    return make


def _many_cells(tree: dict[str, Any]) -> None:
    tree["cells"] = [{"cell_type": "code", "source": "1", "metadata": {}}] * 50_000


def _rubbish_cells(tree: dict[str, Any]) -> None:
    tree["cells"] += [0] * 1_500


def _deep_output(tree: dict[str, Any]) -> None:
    """Deep enough to be read, and too deep to be copied."""
    deep: Any = "x"
    for _ in range(450):
        deep = [deep]
    tree["cells"][1]["outputs"] = [{"output_type": "stream", "text": deep, "data": {"a": deep}}]


def _half_characters(tree: dict[str, Any]) -> None:
    for one in tree["cells"]:
        one["source"] = "".join(one["source"]) + "\n# \ud800"
        one["outputs"] = [{"output_type": "stream", "text": "\udfff"}]


def _strange_ids(tree: dict[str, Any]) -> None:
    for one in tree["cells"]:
        one["metadata"] = {"nbgrader": {"grade_id": "../../\ud800<b>", "grade": True}}


FILE_ATTACKS = [
    ("no JSON", "Bytes that are nothing.", _raw_file(b"\x00\xff" * 1000), "not JSON"),
    ("a pickle", "A pickle for the notebook.", _raw_file(b"cos\nsystem\n(S'id'\ntR."), "not JSON"),
    ("an endless number", "A number of many digits.", _raw_file(b"9" * 100_000), "not JSON"),
    ("brackets", "A million brackets.", _raw_file(b"[" * 10**6), "not JSON"),
    ("too many cells", "50,000 cells.", _with_tree(_many_cells), "at most"),
    (
        "millions of objects",
        "24 MB of empty objects, which take a GiB to read.",
        _with_tree(lambda tree: tree["metadata"].update(x=[{}] * 6_000_000)),
        "lists and objects",
    ),
]
for _name, _tries, _make, _says in FILE_ATTACKS:
    add(_name, _tries, _make, status="unreadable", says=_says)
add("rubbish cells", "1,500 cells that are none.", _with_tree(_rubbish_cells), says="1500 of")
add("a deep output", "An output nested 450 deep.", _with_tree(_deep_output))
add("half characters", "Sources that no file can hold.", _with_tree(_half_characters))
add("strange grade_ids", "Ids that are paths and tags.", _with_tree(_strange_ids))

add(
    "a second guess",
    "One choice where the check stands and another one in a later cell: a short answer is one.",
    cell('answer_size = "b"', last=True),
)

# Hooks and patches inside the box ----------------------------------------------------------

INSIDE = {
    "input transformer": (
        "Empties every later cell, tests among them.",
        "get_ipython().input_transformers_post.append(lambda lines: [])",
    ),
    "cleanup transformer": (
        "The same before anything else is done.",
        "get_ipython().input_transformers_cleanup.insert(0, lambda lines: ['pass\\n'])",
    ),
    "AST transformer": (
        "Removes all asserts from later cells.",
        """
        import ast
        class NoChecks(ast.NodeTransformer):
            def visit_Expr(self, node): return ast.Pass()
            def visit_Assert(self, node): return ast.Pass()
            def visit_With(self, node): return ast.Pass()
        get_ipython().ast_transformers.append(NoChecks())
        """,
    ),
    "display hook": (
        "A display hook and exception handlers that say all is well.",
        """
        import sys
        ip = get_ipython()
        ip.set_custom_exc((Exception,), lambda *a, **k: [])
        sys.displayhook = lambda value: None
        sys.excepthook = lambda *a: None
        ip.showtraceback = lambda *a, **k: None
        """,
    ),
    "cell hooks": (
        "Puts names right before each cell runs.",
        """
        ip = get_ipython()
        ip.events.register("pre_run_cell", lambda *a: ip.user_ns.update(assert_close=print))
        ip.events.register("post_run_cell", lambda *a: ip.user_ns.update(check_answer=print))
        """,
    ),
    "run_cell": (
        "Replaces the shell's run_cell.",
        """
        class Fine: error_before_exec = error_in_exec = None
        get_ipython().run_cell = lambda *a, **k: Fine()
        type(get_ipython()).run_cell = lambda *a, **k: Fine()
        """,
    ),
    "numpy.testing": (
        "Comparisons that never fail.",
        """
        import numpy as np, numpy.testing as t
        t.assert_allclose = t.assert_array_equal = t.assert_equal = lambda *a, **k: None
        np.isclose = lambda a, b, **k: np.ones(np.shape(a), bool)
        np.allclose = np.array_equal = lambda *a, **k: True
        """,
    ),
    "torch": (
        "torch.allclose and torch.equal always true.",
        """
        import torch
        torch.allclose = torch.equal = lambda *a, **k: True
        torch.testing.assert_close = lambda *a, **k: None
        torch.Tensor.__eq__ = lambda self, other: True
        """,
    ),
    "builtins": (
        "isinstance, type, len, abs and exceptions of its own.",
        """
        import builtins
        builtins.isinstance = lambda *a: True
        builtins.len = lambda x: 3
        builtins.abs = lambda x: 0
        builtins.AssertionError = builtins.StopIteration
        builtins.__import__ = lambda *a, **k: None
        """,
    ),
    "the checks": (
        "Every check of lesson_kit.checks replaced, and the setting that it runs in.",
        """
        import lesson_kit.checks as c, lesson_kit.setting as s, sys
        for name in c.__all__:
            setattr(c, name, lambda *a, **k: None)
        c.CheckFailed.__init__ = lambda *a: None
        s.now.seed, s.now.answers = 0, {"answer_size": {"choices": ["a"], "replies": {}}}
        sys.modules["lesson_kit.checks"] = c
        """,
    ),
    "sys.modules": (
        "Modules replaced by ones that agree with everything.",
        """
        import sys, types
        class Yes(types.ModuleType):
            def __getattr__(self, name): return lambda *a, **k: True
        for name in (
            "lesson_kit.checks", "lesson.checks", "numpy.testing", "autograder.grade.tester",
            "autograder.grade.grading",
        ):
            sys.modules[name] = Yes(name)
        """,
    ),
    "the wire": (
        "Encodes every result as the one that would be right, if it knew it.",
        """
        from autograder.box import wire
        from autograder.box import channel
        from autograder.box import inside
        real = wire.encode
        def lie(value, strict=True):
            if isinstance(value, dict) and "value" in value:
                value = {**value, "value": True}
            return real(value, strict=strict)
        wire.encode = channel.wire.encode = lie
        """,
    ),
    "the server": (
        "Answers requests itself: everything passed.",
        """
        from autograder.box import inside
        inside.Inside.evaluate = lambda self, request: {"value": "passed", "points": 8}
        inside.Inside.answer = lambda self, request: {"outcome": "passed", "output": ""}
        """,
    ),
    "import hooks": (
        "A finder that gives empty modules.",
        """
        import sys, importlib.machinery as m
        class Empty:
            def find_spec(self, name, path=None, target=None): return m.ModuleSpec(name, self)
            def create_module(self, spec): return None
            def exec_module(self, module): pass
        sys.meta_path.insert(0, Empty())
        sys.path_hooks.clear(); sys.path_importer_cache.clear()
        """,
    ),
    "trace": (
        "A trace function that changes the locals of whatever runs.",
        """
        import sys, threading
        def tracer(frame, event, arg):
            for name in list(frame.f_locals):
                if name in ("want", "expected", "outcome"): frame.f_locals[name] = "passed"
            return tracer
        sys.settrace(tracer); threading.settrace(tracer)
        """,
    ),
    "random numbers": (
        "Fixes the seeds, to know the inputs of the tests.",
        """
        import random, numpy as np, torch
        random.seed(0); np.random.seed(0); torch.manual_seed(0)
        np.random.default_rng = lambda *a: np.random.Generator(np.random.PCG64(0))
        """,
    ),
}
for _name, (_tries, _source) in INSIDE.items():
    add(f"patch: {_name}", _tries, cell(_source))

# Objects that lie --------------------------------------------------------------------------

LIARS = {
    "__eq__": "class Y:\n    def __eq__(self, o): return True\n    __ne__ = lambda s, o: False\n"
    "    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return self\n"
    "X = Y()",
    "__array__": "class Y:\n    def __array__(self, *a, **k): raise SystemExit\n"
    "    shape = (3,); dtype = np.dtype(float)\nX = Y()",
    "array subclass": "class Y(np.ndarray):\n    def __eq__(self, o): return np.True_\n"
    "    def __array_ufunc__(self, *a, **k): return np.True_\n"
    "    def __array_function__(self, *a, **k): return np.True_\nX = np.zeros(3).view(Y)",
    "tensor subclass": "class Y(torch.Tensor):\n    @classmethod\n"
    "    def __torch_function__(cls, *a, **k): return True\n"
    "X = torch.zeros(3).as_subclass(Y)",
    "str subclass": "class Y(str):\n    def __eq__(self, o): return True\n"
    "    __hash__ = lambda s: 0\n    def strip(self): return 'b'\nX = Y('b')",
    "int subclass": "class Y(int):\n    def __eq__(self, o): return True\n"
    "    __hash__ = int.__hash__\n"
    "X = Y(3)",
    "dict subclass": "class Y(dict):\n    def __getitem__(self, k): return 1\n"
    "    def items(self): raise SystemExit\nX = Y(a=1)",
    "tuple subclass": "class Y(tuple):\n    def __iter__(self): raise SystemExit\n"
    "    def __len__(self): return 2\nX = Y()",
    "object dtype": "X = np.array([type('Y', (), {'__eq__': lambda s, o: True})()] * 3, object)",
    "masked array": "X = np.ma.masked_all(3)",
    "record array": "X = np.zeros(3, [('a', float)])",
    "endless iterator": "import itertools\nX = itertools.count()",
    "endless list": "class Y(list):\n    def __iter__(self):\n        while True: yield 1\nX = Y()",
    "huge shape": "X = np.broadcast_to(0.0, (10**6, 10**6))",
    "huge tensor": "X = torch.zeros(1).expand(10**9)",
    "recursion": "X = []\nX.append(X)",
    "recursive dict": "X = {}\nX['x'] = X",
    "deep": "X = 1\nfor _ in range(10**5): X = [X]",
    "huge int": "X = 10 ** 10**6",
    "many items": "X = [1] * 10**6",
    "long text": "X = 'x' * (8 * 2**20)",
    "collisions": "X = {k * (2**61 - 1): 0 for k in range(10**4 + 1)}",
    "NaN": "X = np.full(3, np.nan)",
    "infinite": "X = np.full(3, np.inf)",
    "meta tensor": "X = torch.zeros(3, device='meta')",
    "sparse tensor": "X = torch.zeros(3).to_sparse()",
    "module": "X = np",
    "generator": "X = (i for i in range(3))",
}
for _name, _source in LIARS.items():
    add(
        f"liar: {_name}",
        f"Every answer is an object that lies or does not travel ({_name}).",
        cell(
            _source,
            double="def double(x):\n    return X",
            quadruple="def quadruple(x):\n    return X",
            answer_size="answer_size = X",
        ),
    )

RAISES = {
    "evil text": "class E(Exception):\n    def __str__(self): raise SystemExit\n",
    "endless text": "class E(Exception):\n    def __str__(self): return 'x' * 10**8\n",
    "evil mro": "class M(type):\n    def mro(cls): return [cls, *type.mro(cls)[1:]]\n"
    "    __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\n",
    "interrupt": "E = KeyboardInterrupt\n",
    "exit": "E = SystemExit\n",
    "generator exit": "E = GeneratorExit\n",
    "stop iteration": "E = StopIteration\n",
    "base exception": "class E(BaseException): pass\n",
    "not implemented": "E = NotImplementedError\n",
    "check failed": "from lesson_kit.checks import CheckFailed as E\n",
    "group": "E = lambda: ExceptionGroup('x', [ValueError()] * 1000)\n",
    "recursion": "E = lambda: E()\n",
}
for _name, _source in RAISES.items():
    add(
        f"raises: {_name}",
        f"Every answer raises an exception that is hard to report ({_name}).",
        cell(
            _source,
            double="def double(x):\n    raise E()",
            quadruple="def quadruple(x):\n    raise E()",
        ),
    )
add(
    "always the wanted error",
    "Always the error that a hidden test asks for: worth that test and no more.",
    answers(double="def double(x):\n    raise ValueError('x is negative')"),
    points={**NOTHING, "double": 1.0},
)

# Reading -----------------------------------------------------------------------------------

add(
    "read the class",
    "Reads gradebook, sources and neighbours by their path.",
    attempt(
        """
        for folder, _, names in os.walk("{outside}"):
            for name in names:
                print("GO" + "T", open(os.path.join(folder, name)).read())
        """
    ),
    tried=True,
    confined=True,
)
add(
    "search the disk",
    "Looks for notebooks, gradebooks and keys everywhere.",
    attempt(
        """
        for folder, below, names in os.walk("/"):
            below[:] = [b for b in below if b not in ("proc", "sys", "lib", "bin", "lib64")]
            for name in names:
                if name.endswith((".ipynb", ".db", ".sqlite3", "id_rsa", "class.toml")):
                    print("GO" + "T", folder, name)
                if name == "misconceptions.py":
                    print("GO" + "T", folder, name)
        for path in ("/etc/passwd", "/etc/shadow", "/root", "/home", "/var"):
            if os.path.exists(path) and (os.path.isfile(path) or path.startswith("/var")):
                print("GO" + "T", path)
        """
    ),
    tried=True,
    confined=True,
)
add(
    "environment",
    "Looks for secrets in the environment of every process.",
    attempt(
        """
        for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
            try:
                text = open(f"/proc/{pid}/environ", "rb").read()
            except OSError:
                continue
            if b"GRADER_SECRET" in text:
                print("GO" + "T", text)
        if "GRADER_SECRET" in os.environ:
            print("GO" + "T")
        """
    ),
    tried=True,
    confined=True,
)
add(
    "other processes",
    "Looks for the grader and other students among the processes, and into their memory.",
    attempt(
        """
        for pid in [int(p) for p in os.listdir("/proc") if p.isdigit()]:
            words = open(f"/proc/{pid}/cmdline").read()
            if "pytest" in words or "jupyter" in words or "bwrap" in words:
                print("GO" + "T", words)
            if pid == os.getpid():
                continue
            for name in ("mem", "environ", "maps", "fd/0", "root"):
                try:
                    os.stat(f"/proc/{pid}/{name}/.") if name == "root" else open(
                        f"/proc/{pid}/{name}", "rb")
                    print("GO" + "T", pid, name)
                except OSError:
                    pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "frames of the caller",
    "Looks for tests and expected values in the frames above and in everything alive.",
    answers(
        double="""
        def double(x):
            import gc, sys
            frame = sys._getframe()
            while frame:
                for value in frame.f_locals.values():
                    if isinstance(value, str) and "HIDDEN TESTS" in value:
                        return value
                for name in ("expected", "want", "bundle", "tester"):
                    if name in frame.f_locals:
                        return frame.f_locals[name]
                frame = frame.f_back
            found = [o for o in gc.get_objects() if type(o).__name__ in ("Bundle", "Tester")]
            return [x + x for x in found] or x
        """
    ),
)
add(
    "memory for sources",
    "Searches its own memory for the tests.",
    attempt(
        """
        wanted = ("BEGIN HIDDEN " + "TESTS").encode()
        for line in open("/proc/self/maps"):
            span, rights = line.split()[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if "heap" not in line and not (end - start < 2**22 and line.count(" 0 ")):
                continue
            with open("/proc/self/mem", "rb", 0) as memory:
                try:
                    memory.seek(start)
                    if b"x is not to be" + b" refused" in memory.read(min(end - start, 2**25)):
                        print("GO" + "T")
                except (OSError, ValueError):
                    pass
        """
    ),
    tried=True,
)
add(
    "solutions in the package",
    "Imports the grader and asks it for the tests and the seed.",
    attempt(
        """
        from lesson_kit import checks, setting
        package = os.path.dirname(checks.__file__)
        for place in (".", "/", package, os.path.dirname(package), *sys.path):
            for name in ("lessons", "solutions", "source", "build/source", "class.toml"):
                if os.path.exists(os.path.join(place, name)) and "site-packages" not in place:
                    print("GO" + "T", place, name)
        if setting.now.seed != 2017 or setting.now.answers:
            print("GO" + "T", setting.now)
        """
    ),
    tried=True,
    confined=True,
    limits=Limits(cell=60, test=5, notebook=120),
)
add(
    "words between boxes",
    "Locks, leases, watches a file that all boxes have; reads what the kernel counts of all.",
    attempt(
        """
        import fcntl, numpy, struct
        file = open(numpy.__file__)
        lock = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 1, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        for attempt in (
            lambda: fcntl.flock(file, fcntl.LOCK_SH),
            lambda: fcntl.lockf(file, fcntl.LOCK_SH),
            *(lambda n=n: fcntl.fcntl(file, n, lock) for n in (5, 6, 7, 36, 37, 38)),
            *(lambda n=n: fcntl.fcntl(file, n, 0) for n in (8, 9, 1024, 1025, 1026, 1035, 1036)),
            lambda: 1 / (libc.inotify_init() >= 0),
            lambda: 1 / (libc.inotify_init1(0) >= 0),
            lambda: open("/proc/sys/fs/dentry-state").read(),
            lambda: open("/proc/meminfo").read(),
            lambda: open("/proc/stat").read(),
            lambda: open("/proc/locks").read(),
        ):
            try:
                attempt()
            except (OSError, ZeroDivisionError):
                continue
            print("GO" + "T", attempt)
        libc.mmap.restype = ctypes.c_void_p
        for flags in (1, 2):
            page = libc.mmap(None, ctypes.c_size_t(4096), 1, flags, file.fileno(), ctypes.c_long(0))
            now, wait = ctypes.c_uint.from_address(page).value, (ctypes.c_long * 2)(0, 10**8)
            for operation in (0, 9, 256 + 9):
                number = 202 if os.uname().machine == "x86_64" else 98
                libc.syscall(number, ctypes.c_void_p(page), operation, now, wait, None, -1)
                if ctypes.get_errno() != 11:
                    print("GO" + "T", operation, ctypes.get_errno())
        fcntl.fcntl(file, fcntl.F_GETFL), fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, 0)
        """
    ),
    tried=True,
    confined=True,
)

add(
    "be the last that is ended",
    "Says after exec, when its files in /proc are its own, that it is not to be ended first.",
    attempt(
        """
        import subprocess
        code = "open('/proc/self/oom_score_adj', 'w').write('0'); print('GO' + 'T')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        print(done.stdout, "Read-only file system" in done.stderr)
        """
    ),
    tried=True,
    confined=True,
)


# Writing -----------------------------------------------------------------------------------

add(
    "write the class",
    "Writes a gradebook and the next submission by their path.",
    attempt(
        """
        for path in ("{outside}/gradebook.db", "{outside}/submitted/zoe/tiny.ipynb"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").write("100")
        """
    ),
    tried=True,
    confined=True,
)
add(
    "write the environment",
    "Changes the libraries, the package and the interpreter's start.",
    attempt(
        """
        import autograder, numpy, site, sysconfig
        places = [os.path.dirname(numpy.__file__), os.path.dirname(autograder.__file__)]
        places += [*site.getsitepackages(), sys.prefix, sysconfig.get_paths()["stdlib"]]
        places += ["/", "/usr/bin", "/etc", "/usr/lib", "/dev", "/proc/sys/kernel", "/sys"]
        for place in places:
            try:
                open(os.path.join(place, "{mark}"), "w").write("import os")
                print("GO" + "T", place)
            except OSError:
                pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "files for the next one",
    "Leaves files in every scratch folder, and looks for what others left.",
    attempt(
        """
        for place in ("/tmp", "/var/tmp", "/dev/shm", "/dev", "/dev/pts", "/box", ".", "~", "/run"):
            path = os.path.join(os.path.expanduser(place), "{mark}")
            if os.path.exists(path):
                print("GO" + "T", path)
            try:
                open(path, "w").write("double = lambda x: 2 * x")
            except OSError:
                pass
        os._exit(5)
        """
    ),
    says="status 5",
    confined=True,
)
add(
    "words in a pipe",
    "Leaves words in a file that all boxes inherit, for the next box to read.",
    attempt(
        """
        import stat
        for number in range(3, 256):
            try:
                mode = os.fstat(number).st_mode
            except OSError:
                continue
            if stat.S_ISFIFO(mode):
                print("GO" + "T", number)
        """
    ),
    tried=True,
)
add(
    "shadow packages",
    "Writes torch.py and lesson_kit/checks.py beside the notebook and imports them anew.",
    attempt(
        """
        kit = ("lesson_kit", "lesson_kit/checks", "lesson", "lesson/checks")
        names = ("torch", "numpy", *kit, "autograder", "sitecustomize")
        os.makedirs("lesson_kit", exist_ok=True)
        os.makedirs("lesson", exist_ok=True)
        for name in names:
            open(f"{name}.py", "w").write("def __getattr__(name): return lambda *a, **k: None")
            sys.modules.pop(name.replace("/", "."), None)
        sys.path.insert(0, os.getcwd())
        import lesson_kit.checks, torch
        """
    ),
    tried=True,
)
add(
    "links out of the box",
    "Links from the working folder to files of the grader.",
    attempt(
        """
        for number, path in enumerate(("{outside}/gradebook.db", "/proc/1/root/etc/shadow")):
            os.symlink(path, f"link{number}")
            try:
                print("GO" + "T", open(f"link{number}").read())
            except OSError:
                pass
        """
    ),
    tried=True,
    confined=True,
)

# Ending, hanging, filling --------------------------------------------------------------------

for _name, _source, _outcome in (
    ("exit", "import sys; sys.exit(0)", "failed"),
    ("os._exit", "import os; os._exit(0)", "crashed"),
    ("abort", "import os; os.abort()", "crashed"),
    # The first process of a namespace is deaf to what is sent from inside it: it returns None.
    ("SIGKILL", "import os; os.kill(os.getpid(), 9)", "failed"),
    ("segfault", "import ctypes; ctypes.string_at(0)", "crashed"),
    ("kill everybody", "import os; os.kill(-1, 9)", "failed"),
    ("exec", "import os; os.execv('/bin/true', ['true'])", "crashed"),
    ("close everything", "import os; os.closerange(0, 512)", "crashed"),
):
    add(
        f"ends: {_name}",
        f"Every answer ends its process before it can be judged ({_name}).",
        answers(
            double=f"def double(x):\n    {_source}\n",
            quadruple=f"def quadruple(x):\n    {_source}\n",
        ),
        outcomes={"test_double": _outcome, "test_quadruple": _outcome},
        confined="everybody" in _name,
    )
add(
    "kill the first process",
    "Signals the first process of the box and everything around it.",
    attempt(
        """
        import signal
        for pid in (1, 2, 3, os.getppid(), -os.getppid()):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        """
    ),
    confined=True,
)
add(
    "hang",
    "Never returns and swallows every interrupt.",
    answers(
        double="""
        def double(x):
            import signal
            for number in range(1, 64):
                try:
                    signal.signal(number, lambda *a: None)
                except (OSError, ValueError):
                    pass
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        """
    ),
    outcomes={"test_double": "timeout"},
)
add(
    "stop",
    "Stops its process.",
    answers(
        double="def double(x):\n    import os, signal\n    os.kill(os.getpid(), signal.SIGSTOP)"
    ),
    # The first process of a namespace is deaf to what is sent from inside it: it returns None.
    outcomes={"test_double": "failed"},
)
add(
    "slow drip",
    "Sends its answer byte by byte, each in time.",
    answers(
        double="""
        def double(x):
            import os, stat, time
            while True:
                for number in range(3, 64):
                    try:
                        if stat.S_ISSOCK(os.fstat(number).st_mode):
                            os.write(number, double.frame[:1] or b"\\0")
                            double.frame = double.frame[1:]
                    except OSError:
                        pass
                time.sleep(0.05)
        double.frame = b"ATN1" + bytes(6) + b"\\xff\\0"
        """
    ),
    outcomes={"test_double": "timeout"},
)
add(
    "hang in a cell",
    "A cell that never ends.",
    cell("while True: pass"),
    says="did not finish",
)
add(
    "many hanging cells",
    "Uses up the time of the whole notebook, cell by cell.",
    cell("import time; time.sleep(600)", last=True),
    says="did not finish",
    limits=Limits(cell=5, test=4, notebook=5),
)
add(
    "fork bomb",
    "Starts processes without end.",
    cell("import os\nwhile True:\n    os.fork()"),
    confined=True,
)
add(
    "thread bomb",
    "Starts threads without end.",
    cell(
        "import threading, time\n"
        "while True: threading.Thread(target=time.sleep, args=(60,)).start()"
    ),
    confined=True,
)
_LITTLE = Limits(cell=60, test=5, notebook=120, memory=400)
add(
    "memory",
    "Takes memory without end.",
    cell("held = []\nwhile True: held.append(bytearray(b'x') * 2**24)"),
    says="GiB of memory",
    confined=True,
    limits=_LITTLE,
)
add(
    "memory after the first byte",
    "Begins to answer, and takes memory then.",
    cell(
        """
        import os, stat
        for number in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode): os.write(number, b"A")
            except OSError:
                pass
        held = []
        while True: held.append(bytearray(b'x') * 2**24)
        """
    ),
    says="GiB of memory",
    confined=True,
    limits=_LITTLE,
)
add(
    "memory in children",
    "Takes memory in processes of its own while it answers quickly itself.",
    cell(
        """
        import os, time
        for _ in range(4):
            if os.fork() == 0:
                held = []
                while len(held) < 60: held.append(bytearray(b'x') * 2**22); time.sleep(0.01)
                time.sleep(60)
        time.sleep(50)
        """
    ),
    says="GiB of memory",
    confined=True,
    limits=_LITTLE,
)
add(
    "memory without an owner",
    "Memory that belongs to no process: memfd, System V segments, shared mappings, /dev/zero.",
    attempt(
        """
        import mmap
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.memfd_create(b"x", 0) >= 0: print("GO" + "T memfd")
        if libc.shmget(0, 2**20, 0o1600) >= 0: print("GO" + "T shmget")
        try:
            mmap.mmap(-1, 2**20); print("GO" + "T shared mapping")
        except OSError:
            pass
        try:
            mmap.mmap(os.open("/dev/zero", os.O_RDWR), 2**20); print("GO" + "T zero")
        except OSError:
            pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "disk",
    "Fills the disk with files, small and large.",
    attempt(
        """
        total = 0
        for place in (".", "/tmp", "/dev/shm"):
            for number in range(20):
                try:
                    with open(f"{place}/fill{number}", "wb") as file:
                        for _ in range(64):
                            total += file.write(b"x" * 2**20)
                except OSError:
                    pass
        if total > 450 * 2**20: print("GO" + "T", total)
        """
    ),
    tried=True,
    confined=True,
)
add(
    "files without end",
    "Uses up the inodes.",
    attempt("for number in range(10**5): open(f'f{number}', 'w').close()"),
    tried=True,
    confined=True,
    says="No space",
)
add(
    "print loop",
    "Prints without end.",
    cell("while True: print('x' * 1000)"),
    says="did not finish",
)
add(
    "C-level output",
    "Writes to the descriptors below Python without end.",
    cell("import os\nwhile True: os.write(1, b'x' * 2**16)"),
)
add(
    "a shell's output",
    "A program that prints without end.",
    cell("!timeout 2 yes"),
)

add(
    "nobody says how it ended",
    "Ends the box kept at its check, and has the one beside it take its time to say how.",
    edited(
        lambda notebook, bundle: notebook.cells.append(
            nbformat.v4.new_code_cell(
                code(
                    """
                    import time
                    import autograder.box.inside as inside
                    inside._status = lambda number: time.sleep(6)
                    def double(x): return 3 * x
                    """
                )
            )
        ),
        double="import os\ndef double(x):\n    os._exit(1)\n",
        quadruple="def quadruple(x):\n    return 5 * x\n",
    ),
    outcomes={"test_double": "crashed"},
    limits=Limits(cell=5, test=4, notebook=30),
)

# Network, escalation -------------------------------------------------------------------------

add(
    "network",
    "Sockets of every kind: TCP, UDP, raw, packet, netlink, vsock, Bluetooth, ALG.",
    attempt(
        """
        import socket
        for family in [2, 10, 16, 17, 31, 38, 40, 44]:
            for kind in (1, 2, 3, 5):
                try:
                    s = socket.socket(family, kind); print("GO" + "T", family, kind)
                except OSError:
                    pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "unix sockets of the machine",
    "Abstract and path sockets of others.",
    attempt(
        """
        import socket
        names = [line.split()[-1] for line in open("/proc/net/unix") if line.count(" ") > 6][1:]
        names += ["/run/docker.sock", "/run/dbus/system_bus_socket", "@/tmp/.X11-unix/X0"]
        for name in names:
            try:
                s = socket.socket(socket.AF_UNIX)
                s.connect("\\0" + name[1:] if name.startswith("@") else name)
                print("GO" + "T", name)
            except OSError:
                pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "system calls",
    "ptrace, mount, unshare, keyctl, bpf, io_uring, userfaultfd, perf and the like.",
    attempt(
        """
        import platform
        libc = ctypes.CDLL(None, use_errno=True)
        numbers = {"x86_64": (101, 155, 161, 165, 166, 248, 250, 272, 298, 304, 308, 310, 311, 321,
                              323, 425, 428, 429, 430, 434 + 4, 442)}.get(platform.machine(), ())
        for number in numbers:
            ctypes.set_errno(0)
            if libc.syscall(number, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
                print("GO" + "T", number, ctypes.get_errno())
        for flag in (0x10000000, 0x20000000, 0x00020000, 0x40000000):
            if libc.unshare(flag) == 0: print("GO" + "T unshare")
        ctypes.set_errno(0)
        if platform.machine() == "x86_64" and libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) != -1:
            print("GO" + "T clone")
        if libc.syscall(435, 0, 0) != -1 or ctypes.get_errno() not in (38, 1):
            print("GO" + "T clone3")
        """
    ),
    tried=True,
    confined=True,
)
add(
    "setuid",
    "Becomes root: setuid, setuid programs, capabilities, new mappings.",
    attempt(
        """
        import subprocess
        for change in (os.setuid, os.setgid, os.seteuid):
            if os.getuid() != 0:
                try:
                    change(0); print("GO" + "T", change)
                except OSError:
                    pass
        if os.getuid() == 0: print("GO" + "T root")
        for command in (["su", "-c", "id"], ["mount", "-t", "tmpfs", "x", "/tmp"],
                        ["unshare", "-r", "true"], ["bwrap", "--bind", "/", "/", "true"],
                        ["sudo", "-n", "true"], ["chroot", "/", "true"]):
            try:
                if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=3).returncode == 0:
                    print("GO" + "T", command)
            except (OSError, subprocess.TimeoutExpired):
                pass
        status = open("/proc/self/status").read()
        if int(status.split("CapEff:")[1].split()[0], 16) or "NoNewPrivs:\\t1" not in status:
            print("GO" + "T capabilities")
        """
    ),
    tried=True,
    confined=True,
    limits=Limits(cell=60, test=5, notebook=120),
)
add(
    "limits raised",
    "Raises its own limits.",
    attempt(
        """
        import resource
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
            try:
                resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                print("GO" + "T", kind)
            except (OSError, ValueError):
                pass
        """
    ),
    tried=True,
    confined=True,
)
add(
    "daemon",
    "A double-forked process of its own session that waits for the next submission.",
    cell(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                end = time.time() + 20
                while time.time() < end:
                    for place in ("{outside}", "/tmp", "/dev/shm", "/box"):
                        try:
                            open(f"{place}/{mark}", "a").write("x")
                        except OSError:
                            pass
                    for number in range(3, 64):
                        try:
                            os.write(number, b"ATN1")
                        except OSError:
                            pass
                    time.sleep(0.01)
            os._exit(0)
        """
    ),
    confined=True,
)

# The channel -----------------------------------------------------------------------------------

_SOCKET = code(
    """
    import os, stat, struct, json
    from autograder.box import wire
    def send(data):
        for number in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode): os.write(number, data)
            except OSError:
                pass
    """
)


def frames(expression: str) -> Make:
    """Every answer sends bytes of its own first."""
    sends = f"    send({expression})\n    return x\n"
    return cell(
        _SOCKET,
        double=f"def double(x):\n{sends}",
        quadruple=f"def quadruple(x):\n{sends}",
    )


for _name, _source in {
    "noise": "os.urandom(4000)",
    "zeros": "bytes(4000)",
    "a huge length": 'struct.pack(">4sQQ", b"ATN1", 2**63, 2**63)',
    "an empty frame": 'struct.pack(">4sQQ", b"ATN1", 0, 0)',
    "JSON alone": 'struct.pack(">4sQQ", b"ATN1", 2, 0) + b"{}"',
    "deep JSON": 'struct.pack(">4sQQ", b"ATN1", 10**5, 0) + b"[" * 10**5',
    "an unknown kind": 'wire.HEADER.pack(b"ATN1", 36, 0) + '
    'b\'{"tree":["pickle","x"],"buffers":[]}\'',
    "not a dict": "wire.encode([1, 2])",
    "no id": 'wire.encode({"value": 1})',
    "an array for an id": 'wire.encode({"id": __import__("numpy").arange(3), "value": 1})',
    "another id": 'wire.encode({"id": 10**6, "value": 1})',
    "an error of strange types": 'wire.encode({"id": 1, "error": {"types": [1, None], "text": 3}})',
}.items():
    add(f"frame: {_name}", f"Sends {_name} instead of an answer.", frames(_source))
add(
    "forged replies",
    "Answers this request and the next ones in advance: all is well, nothing raised.",
    cell(
        _SOCKET
        + code(
            """
            import sys
            def forge():
                frame = sys._getframe()
                while "request" not in frame.f_locals: frame = frame.f_back
                for number in range(frame.f_locals["request"]["id"], 60):
                    send(wire.encode({"id": number, "value": None, "output": ""}))
            """
        ),
        double="def double(x):\n    forge()\n    return x",
        quadruple="def quadruple(x):\n    forge()\n    return x",
    ),
)
add(
    "a forged reply to a cell",
    "Replies to its own cell with an id that has no truth value.",
    cell(_SOCKET + 'import numpy\nsend(wire.encode({"id": numpy.arange(3), "output": ""}))\n'),
    says="bytes of its own",
)
add(
    "a forged flood",
    "A reply whose output is larger than any box would send.",
    cell(
        _SOCKET
        + code(
            """
            import sys
            frame = sys._getframe()
            while "request" not in frame.f_locals: frame = frame.f_back
            os.set_blocking(3, True)
            send(wire.encode({"id": frame.f_locals["request"]["id"], "output": "x" * 2**25}))
            """
        )
    ),
)
add(
    "forked twins",
    "Parent and child both go on as the box, and both answer.",
    cell("import os; os.fork()"),
)
add(
    "the channel given away",
    "A child keeps the channel open after its parent has ended.",
    cell("import os, time\nif os.fork() == 0:\n    time.sleep(60)\nelse:\n    os._exit(3)"),
)

# Hidden inputs ---------------------------------------------------------------------------------

#: What each ``double`` does with a negative input, which only a hidden test gives.
_LEAKS = {
    "printing": "print(told)",
    "printing below Python": "import os; os.write(1, told.encode()); os.write(2, told.encode())",
    "an error's text": "raise TypeError(told)",
    "the expected error's text": "raise ValueError(told)",
    "an error's class": "raise type(told, (Exception,), {})()",
    "a warning": "import warnings; warnings.warn(told)",
    "its result": "return told",
    "a result that does not travel": "return type(told, (), {})()",
    "a forged frame": "send(wire.HEADER.pack(b'ATN1', len(told) + 26, 0) "
    '+ b\'{"tree":["\' + told.encode() + b\'"],"buffers":[]}\')',
    "a file": "open('/tmp/told', 'w').write(told); import os; os._exit(1)",
    "a later visible test": "global kept; kept = told",
    "the answer's name": "global answer_size; answer_size = told",
}
for _name, _source in _LEAKS.items():
    _double = (
        "def double(x):\n    if np.any(np.asarray(x) < 0):\n"
        f"        told = 'LE' + f'AK{{x}}'\n        {_source}\n    return 3 * x\n"
    )
    add(
        f"leak by {_name}",
        f"Tells the student the input of a hidden test by {_name}.",
        cell(
            _SOCKET + "kept = ''\nimport os\n"
            "if os.path.exists('/tmp/told'): raise Exception(open('/tmp/told').read())\n",
            double=_double,
            quadruple="def quadruple(x):\n    raise TypeError(kept)\n",
        ),
        points={**NOTHING, "double": 1.0} if _name == "the expected error's text" else NOTHING,
        confined=_name == "a file",
    )

# What people look at ---------------------------------------------------------------------------

add(
    "escapes in a message",
    "Control characters for the terminal and the database of whoever reads the message.",
    answers(
        double="def double(x):\n"
        "    raise TypeError('\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\x00\\u202e\\ud800')",
        answer_size="answer_size = '\\x1b[2J\\x00'",
    ),
)
add(
    "a long answer",
    "A message of many megabytes.",
    answers(
        double="def double(x):\n    return 'x' * 10**7",
        answer_size="answer_size = 'x' * 10**7",
    ),
)


# Right answers in strange clothes ----------------------------------------------------------------

HONEST: list[Attack] = []


def honest(name: str, what: str, make: Make, **due: Any) -> None:
    HONEST.append(Attack(name, what, make, points=FULL, **due))


def right(text: str, **more: Any) -> Make:
    return cell(text, right=True, **more)


def changed(change: Callable[[NotebookNode], None]) -> Make:
    def make(bundle: Bundle, outside: Path) -> bytes:
        notebook = notebook_with(bundle)
        change(notebook)
        return as_bytes(notebook)

    return make


def _renamed_cells(notebook: NotebookNode) -> None:
    for one in notebook.cells:
        one["id"] = "same"


def _old_format(notebook: NotebookNode) -> None:
    notebook.nbformat_minor = 0
    for one in notebook.cells:
        one.pop("id", None)
        one.source = one.source.splitlines(keepends=True)


def _answers_split(notebook: NotebookNode) -> None:
    for number, one in enumerate(list(notebook.cells)):
        if grade_id(one) == "quadruple":
            notebook.cells.insert(number + 1, nbformat.v4.new_code_cell(one.source))
            one.source = "# see below\ndef quadruple(x):\n    raise NotImplementedError\n"


DOUBLE = "def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise ValueError\n"

honest(
    "warns",
    "Warns in every call.",
    right("", double=DOUBLE + "    import warnings; warnings.warn('slow')\n    return x + x"),
)
honest(
    "prints",
    "Prints in every call, much and below Python.",
    right(
        "",
        double=DOUBLE + "    import os; print('x' * 10**6); os.write(2, b'y' * 10**6)\n"
        "    return x + x",
    ),
)
honest("adds cells", "Empty, broken and untidy cells.", right("1 / 0\n"))
honest(
    "imports more",
    "The standard library and scipy-like things.",
    right("import collections, functools, decimal, sqlite3, asyncio, typing, seaborn, torch.optim"),
)
honest(
    "slow",
    "Slow, within the limits.",
    right(
        "import time; time.sleep(1)",
        double=DOUBLE + "    import time; time.sleep(0.5)\n    return x + x",
    ),
)
honest("equal cell ids", "All cells have one id.", changed(_renamed_cells))
honest("format 4.0", "No ids, sources as lists.", changed(_old_format))
honest("answer in the next cell", "The answer cell keeps its stub.", changed(_answers_split))
honest(
    "threads",
    "Computes in threads.",
    right(
        "from concurrent.futures import ThreadPoolExecutor",
        double=DOUBLE + "    with ThreadPoolExecutor(4) as pool:\n"
        "        return np.array(list(pool.map(lambda v: v + v, x)))",
    ),
)
honest(
    "processes",
    "Computes in eight processes, which all hold the libraries.",
    right(
        "import multiprocessing as mp\ndef twice(v): return v + v",
        double=DOUBLE + "    with mp.get_context('fork').Pool(8) as pool:\n"
        "        return np.array(pool.map(twice, list(x)))",
    ),
    limits=Limits(cell=60, test=60, notebook=240, memory=1024),
)
honest(
    "data loader",
    "Loads data with worker processes of torch.",
    right(
        "from torch.utils.data import DataLoader\n"
        "assert len(list(DataLoader(list(range(8)), num_workers=2))) == 8"
    ),
    limits=Limits(cell=60, test=60, notebook=240),
)
honest(
    "plots",
    "Plots and leaves figures open.",
    right(
        "import matplotlib.pyplot as plt\nfor _ in range(5): plt.figure(); plt.plot([1, 2])\n"
        "plt.savefig('figure.png'); plt.show()"
    ),
)
honest(
    "global state",
    "Counts its calls in globals and caches.",
    right(
        "import functools\ncalls = 0\n@functools.cache\ndef two(): return 2",
        double="def double(x):\n    global calls\n    calls += 1\n"
        "    if np.any(np.asarray(x) < 0):\n        raise ValueError\n    return two() * x",
    ),
)
honest(
    "dataclasses and pickle",
    "Classes of its own, pickled and read back.",
    right(
        "import pickle, dataclasses\n@dataclasses.dataclass\nclass Twice:\n    by: int = 2\n"
        "    def __call__(self, x): return self.by * x\n"
        "twice = pickle.loads(pickle.dumps(Twice()))",
        double=DOUBLE + "    return twice(x)",
    ),
)
honest(
    "temporary files",
    "Writes and reads files.",
    right(
        "import tempfile, pathlib",
        double=DOUBLE + "    with tempfile.TemporaryDirectory() as d:\n"
        "        np.save(pathlib.Path(d) / 'x.npy', x + x)\n"
        "        return np.load(pathlib.Path(d) / 'x.npy')",
    ),
)
honest(
    "gradients off",
    "torch.set_grad_enabled(False), left so.",
    right("import torch; torch.set_grad_enabled(False); torch.set_default_dtype(torch.float64)"),
)
honest(
    "numpy raises",
    "np.seterr(all='raise'), left so.",
    right("import numpy as np; np.seterr(all='raise'); np.set_printoptions(precision=1)"),
)
honest(
    "warnings are errors",
    "warnings.simplefilter('error'), left so.",
    right("import warnings; warnings.simplefilter('error')"),
)
honest(
    "own print",
    "Redefines print, input and display.",
    right("print = input = display = None", last=True),
)
honest(
    "own stdout",
    "Replaces and closes the output.",
    right("import sys, io; sys.stdout.close(); sys.stdout = io.StringIO(); sys.stderr = None"),
)
honest(
    "names of the probes",
    "Classes and functions named as probes and checks are.",
    right(
        "class result_and_input: pass\nclass probe: pass\ndef assert_close(): pass\n"
        "check_rng = checks_passed = x = result = after = None",
        last=True,
    ),
)
honest(
    "a named tuple",
    "Attributes on a function, a callable object for a function.",
    right(
        "class Double:\n    def __call__(self, x):\n        if np.any(np.asarray(x) < 0):\n"
        "            raise ValueError\n        return x + x\ndouble = Double()",
        last=True,
    ),
)
honest(
    "another folder",
    "Changes the working folder and removes what was in it.",
    right("import os, shutil\nfor n in os.listdir(): os.remove(n)\nos.mkdir('d'); os.chdir('d')"),
)
honest(
    "signal handlers",
    "Handlers and exit functions of its own.",
    right(
        "import signal, atexit\nsignal.signal(signal.SIGINT, lambda *a: None)\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\natexit.register(print, 'bye')"
    ),
)
honest("await", "Awaits in a cell.", right("import asyncio\nawait asyncio.sleep(0.01)"))
honest(
    "an own exception",
    "Raises a subclass of the error that is asked for.",
    right(
        "class Negative(ValueError):\n    def __str__(self): return 'negative'",
        double="def double(x):\n    if np.any(np.asarray(x) < 0):\n        raise Negative()\n"
        "    return x + x",
    ),
)

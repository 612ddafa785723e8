"""The command line: what each command prints and writes, what it refuses in one line, and with which exit code."""
# ruff: noqa: E501 - rows of a table are read across

from __future__ import annotations

import doctest
import importlib.metadata
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import files
from bnnsgraph.__main__ import COMMANDS, command_line, main
from bnnsgraph.commands import bench, doctor, probes
from bnnsgraph.commands.arrays import npz

ROOT = Path(__file__).parent.parent
NAMES = [add.__name__.removeprefix("add_") for add in COMMANDS]
TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)

PROGRAM = """\
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
import bnnsgraph as bg
from helper import helped


@dataclass
class Settings:
    size: int = 3


def rows(b):
    table = b.constant("table", values=np.arange(30, dtype=np.float32).reshape(10, 3))
    return table.gather(b.argument("i", bg.Int32, ["n"]), axis=0).named("rows")


def broken(b):
    return b.argument("x", bg.Float32, [2]) + b.argument("y", bg.Float32, [3])


def fails(b):
    return undefined


number = Settings().size
graph = bg.make_context(rows).graph
"""


def block(b: bg.Builder) -> list[bg.Tensor[Any]]:
    """Every kind of argument: a number, named sizes, one without a name, and state."""
    scale = b.argument("scale", bg.Float32)
    x = b.argument("x", bg.Float32, ["n", 2])
    i = b.argument("i", bg.Int64, ["n"])
    total = b.argument("total", bg.BFloat16, [-1], intent=bg.Intent.INPUT_OUTPUT)
    total[...] = total + total
    return [(x * scale).gather(i, axis=0).named("file"), (i + 1).named("next")]


def rows(b: bg.Builder) -> bg.Tensor[Any]:
    return b.constant("table", values=TABLE).gather(b.argument("i", bg.Int32, ["n"]), axis=0).named("rows")


def recorded(block: Any) -> bg.Graph:
    builder = bg.Builder()
    return builder.finish(block(builder))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A scratch folder with two graphs, a program and arrays; everything runs there."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(PROGRAM, encoding="utf-8")
    Path("helper.py").write_text("helped = True", encoding="utf-8")
    bg.save(recorded(block), "all.bnnsgraph")
    bg.save(recorded(rows), "rows.bnnsgraph")
    np.save("i.npy", np.array([1, 0, 9], np.int32))
    np.save("outside.npy", np.array([1, 10], np.int32))
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name in ("model", "helper", "bnnsgraph_run_model"):
            del sys.modules[name]


def ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints that does what it should."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    return printed.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The message of a command that fails, without the name of the program."""
    before = sorted(os.listdir())
    try:
        found = main(arguments)
    except SystemExit as stopped:
        found = stopped.code
    printed = capsys.readouterr()
    assert (found, printed.out) == (code, "")
    assert sorted(os.listdir()) == before
    assert "Traceback" not in printed.err
    return printed.err.removeprefix("python -m bnnsgraph ").rstrip("\n")


# Help


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    text = capsys.readouterr().out
    assert re.findall(r"^    (\w+) ", text, re.MULTILINE) == NAMES
    assert refused(capsys, "shwo").startswith("python -m bnnsgraph: argument COMMAND: invalid choice: 'shwo'")
    assert refused(capsys, "show").startswith("show: the following arguments are required: FILE (see python -m bnnsgraph show")


@pytest.mark.parametrize("name", NAMES)
def test_examples_of_the_help_are_right(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    lines = [line for line in text.split("examples:\n")[1].splitlines() if "bnnsgraph " + name in line]
    assert lines
    for line in lines:
        words = shlex.split(line.partition("python -m bnnsgraph ")[2], comments=True)
        assert command_line().parse_args(words).command == name


WITHOUT_JAX = """
import contextlib, os, sys
from bnnsgraph.__main__ import main
with contextlib.suppress(SystemExit):
    main(["run", "--help"])
codes = [main(["show", "rows.bnnsgraph"]), main(["show", "rows.bnnsgraph", "--svg", "--html"])]
read, write = os.pipe()
os.close(read)
os.dup2(write, 1)  # as in `bnnsgraph show FILE | head`, when head has read enough
codes.append(main(["show", "rows.bnnsgraph"]))
sys.stderr.write(f"{codes}, JAX: {'jax' in sys.modules}")
"""


def test_help_and_show_start_no_jax_and_stop_when_nobody_reads() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", WITHOUT_JAX], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "[0, 0, 1], JAX: False")


def test_the_installed_command() -> None:
    script = Path(sys.executable).with_name("bnnsgraph")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "bnnsgraph"]
    name = "bnnsgraph" if script.exists() else "python -m bnnsgraph"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "show", "absent"], env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{name} show: absent: No such file or directory\n"


# show


def test_show_prints_the_listing(capsys: pytest.CaptureFixture[str]) -> None:
    assert ok(capsys, "show", "rows.bnnsgraph") == f"{bg.load('rows.bnnsgraph')}\n"


def test_show_writes_pictures_and_pages(capsys: pytest.CaptureFixture[str]) -> None:
    graph = bg.load("rows.bnnsgraph")
    lines = ok(capsys, "show", "rows.bnnsgraph", "--svg", "--html", "page.html").splitlines()
    assert [line.split(" (")[0] for line in lines] == ["wrote rows.svg", "wrote page.html"]
    assert Path("rows.svg").read_text(encoding="utf-8") == graph.to_svg()
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "<title>rows.bnnsgraph</title>" in page
    assert page.count("</html>") == 1
    assert "<svg" in page


def test_code_instead_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    listing = ok(capsys, "show", "model.py:rows")
    assert "Gather(%0, %1, axis=0)  model.py:15" in listing
    assert ok(capsys, "show", "model:graph") == listing
    assert ok(capsys, "show", "model.py:rows", "--svg").startswith("wrote rows.svg")
    messages = {
        "model.py": "model.py must be followed by the name of a block or context, as in model.py:model, got none",
        "model.py:absent": "model.py:absent must name a block, a context or a graph, got no 'absent'",
        "model.py:number": "model.py:number must name a block, a context or a graph, got int",
        "model.py:fails": "model.py:fails: the code must run, got NameError: name 'undefined' is not defined\n"
        "  at model.py:23:  return undefined",
        "absent.py:rows": "absent.py: No such file or directory",
        "absent:rows": "absent:rows: the code must run, got ModuleNotFoundError: No module named 'absent'",
    }
    assert {name: refused(capsys, "show", name).removeprefix("show: ") for name in messages} == messages
    message = refused(capsys, "show", "model.py:broken")
    assert message.startswith("show: model.py:broken: Add(): ")
    assert message.endswith(
        'at model.py:19 (broken):  return b.argument("x", bg.Float32, [2]) + b.argument("y", bg.Float32, [3])'
    )


@pytest.mark.parametrize("command", [["show"], ["run"], ["export", "--to", "swift"], ["bench"]], ids=lambda words: words[0])
def test_files_that_hold_no_graph(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path("rows.bnnsgraph").read_bytes()
    Path("cut.bnnsgraph").write_bytes(whole[:-1])
    Path("empty.bnnsgraph").write_bytes(b"")
    hint = "\n  FILE must be what bnnsgraph.save wrote, whole"
    messages = {
        "absent.bnnsgraph": "absent.bnnsgraph: No such file or directory",
        ".": ".: Is a directory",
        "cut.bnnsgraph": "cut.bnnsgraph: the arrays must take the 120 bytes behind the header, got 119 bytes" + hint,
        "empty.bnnsgraph": "empty.bnnsgraph: a safetensors file must be at least 8 bytes long, got 0" + hint,
    }
    assert {file: refused(capsys, *command, file).removeprefix(f"{command[0]}: ") for file in messages} == messages
    assert refused(capsys, *command, "i.npy").startswith(f"{command[0]}: i.npy: the header must fit the file")


# run


def test_run_prints_results(capsys: pytest.CaptureFixture[str]) -> None:
    """The only argument of a graph needs no name."""
    assert ok(capsys, "run", "rows.bnnsgraph", "--input", "i.npy") == "rows: float32[3, 3] =\n" + str(TABLE[[1, 0, 9]]) + "\n"


def test_run_writes_results_and_reads_them_again(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers, lists, either byte order, element types that NumPy's files have no name for, and state."""
    np.save("big.npy", np.array([1, 0], ">i8"))
    np.savez("state.npz", total=np.array([1, 2, 3], bg.BFloat16.numpy), i=np.array([1, 0]))
    words = ["run", "all.bnnsgraph", "--input", "scale=0.5", "--input", "x=[[1, 2], [nan, -inf]]", "--output", "out.npz"]
    lines = ok(capsys, *words, "--input", "i=big.npy", "--input", "total=state.npz").splitlines()
    assert lines[0].startswith("wrote out.npz (")
    assert lines[1:] == ["  file: float32[2, 2]", "  next: int64[2]", "  total: bfloat16[3]"]
    with np.load("out.npz") as found:
        assert list(found) == ["file", "next", "total"]
        np.testing.assert_array_equal(found["file"], np.array([[np.nan, -np.inf], [0.5, 1]], np.float32))
        assert found["next"].tolist() == [2, 1]
        assert found["total"].view(bg.BFloat16.numpy).tolist() == [2, 4, 6]
    first = Path("out.npz").read_bytes()
    ok(capsys, *words, "--input", "state.npz")
    assert Path("out.npz").read_bytes() == first
    ok(capsys, *words, "--input", "i=big.npy", "--input", "total=out.npz", "--device", "cpu")
    with np.load("out.npz") as found:
        assert found["total"].view(bg.BFloat16.numpy).tolist() == [4, 8, 12]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "every argument must be given (i: int32[n]), got none for i; add --input i=FILE.npy"),
        (["j=i.npy"], "--input must name arguments of the graph (i: int32[n]), got 'j' in 'j=i.npy'"),
        (["other.npz"], "--input must name arguments of the graph (i: int32[n]), got 'a' in 'other.npz'"),
        (["i=other.npz"], "other.npz must hold one array or 'i', got a, b"),
        (["i=i.npy", "i=[1]"], "--input must give each argument once, got 'i' twice"),
        (["i=absent.npy"], "--input i must be a .npy or .npz file, a number or a list, got 'absent.npy', and no such file"),
        (["i="], "--input i must be a .npy or .npz file, a number or a list, got '', and no such file"),
        (["absent.npy"], "absent.npy: No such file or directory"),
        (["i=."], ".: Is a directory"),
        (["i=wide.npy"], "wide.npy must hold int32, got int64; save array.astype('int32')"),
        (["i=words.npy"], "words.npy must hold int32, got <U2; save array.astype('int32')"),
        (["i=matrix.npy"], "argument 'i' must have rank 1, [n], got rank 2, [1, 2]\n  declared at "),
        (["i=model.py"], "model.py must be a .npy or .npz file, got other bytes"),
        (["i=empty.npy"], "empty.npy must be a .npy or .npz file, got other bytes"),
        (["i=cut.npy"], "cut.npy must be a whole .npy or .npz file of numbers, got: "),
        (["cut.npz"], "cut.npz must be a whole .npy or .npz file of numbers, got: File is not a zip file"),
        (["i=header.npy"], "header.npy must be a whole .npy or .npz file of numbers, got: "),
        (["i=objects.npy"], "objects.npy must be a whole .npy or .npz file of numbers, got: Object arrays cannot be loaded"),
        (["i=[1.5]"], "--input i: values must be integers to be used with a int32 tensor, got float64"),
        (["i=[[1], [1, 2]]"], "--input i: values must be a number or rows of equal length, got [[1], [1, 2]]"),
        (["i=[3000000000]"], "--input i: values must "),
        (["i=" + "[" * 100_000], "--input i must be a .npy or .npz file, a number or a list, got '[["),
        (["i=3"], "argument 'i' must have rank 1, [n], got rank 0, []"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_inputs_that_are_refused(inputs: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path("i.npy").read_bytes()
    np.savez("other.npz", a=np.array([1], np.int32), b=np.array([1], np.int32))
    np.save("wide.npy", np.array([1]))
    np.save("words.npy", np.array(["ab"]))
    np.save("matrix.npy", np.array([[1, 2]], np.int32))
    np.save("objects.npy", np.array([{}], object), allow_pickle=True)
    Path("empty.npy").write_bytes(b"")
    Path("cut.npy").write_bytes(whole[:-1])
    Path("cut.npz").write_bytes(bytes(npz({"i": np.array([1], np.int32)}))[:-1])
    Path("header.npy").write_bytes(whole.replace(b"'shape'", b"'shapo'"))
    words = [word for text in inputs for word in ("--input", text)]
    found = refused(capsys, "run", "rows.bnnsgraph", *words, "--output", "out.npz")
    assert found.removeprefix("run: ").startswith(message)
    assert found.count("\n") == found.count("\n  declared at ")


def test_each_input_has_its_own_option(capsys: pytest.CaptureFixture[str]) -> None:
    found = refused(capsys, "run", "rows.bnnsgraph", "--input", "i=i.npy", "j=i.npy")
    assert ": unrecognized arguments: j=i.npy; write --input, or --size, before each (see " in found


def test_a_run_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "rows.bnnsgraph", "--input", "i=outside.npy", "--output", "out.npz"]
    message = refused(capsys, *words, code=1)
    assert message.startswith(
        "run: Gather(axis=0): indices must be in [-10, 10) on axis 0, got 10 at position [1]\n  recorded at "
    )
    words = [
        "run",
        "all.bnnsgraph",
        "--input",
        "scale=inf",
        "--input",
        "x=[[1, 2]]",
        "--input",
        "i=[0]",
        "--input",
        "total=[1]",
    ]
    message = refused(capsys, *words, "--check-finite", code=1)
    assert message.startswith("run: argument 'scale' must be finite")


def test_outputs_that_cannot_be_written(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "rows.bnnsgraph", "--input", "i=i.npy", "--output"]
    Path("taken.npz").mkdir()
    messages = {
        "out.txt": "the file to write must end with .npz, got 'out.txt'",
        "absent/out.npz": "the file to write must be in a folder that exists, got 'absent/out.npz'",
        "taken.npz": "taken.npz: Is a directory",
    }
    assert {path: refused(capsys, *words, path).removeprefix("run: ") for path in messages} == messages
    os.rename("rows.bnnsgraph", "rows.svg")
    message = refused(capsys, "show", "rows.svg", "--svg")
    assert message == "show: the file to write must be another than the graph, got 'rows.svg' for both"
    assert refused(capsys, "show", "--svg", "all.bnnsgraph", "rows.svg").startswith(
        "show: the file to write must end with .svg"
    )

    Path("out.svg").write_bytes(b"old")

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    message = refused(capsys, "show", "all.bnnsgraph", "--svg", "out.svg")
    assert message == "show: out.svg: No space left on device"
    assert Path("out.svg").read_bytes() == b"old"


def test_an_interruption(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bg.Context, "__call__", interrupt)
    assert refused(capsys, "run", "rows.bnnsgraph", "--input", "i=i.npy", code=130) == "run: interrupted"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "there must be enough memory, got none left: an allocation failed"),
        (RuntimeError("RESOURCE_EXHAUSTED: out of memory\nlong\nlist"), "RESOURCE_EXHAUSTED: out of memory"),
    ],
)
def test_what_the_device_refuses(
    error: Exception, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(bg.Context, "__call__", refuse)
    assert refused(capsys, "run", "rows.bnnsgraph", "--input", "i=i.npy", code=1) == f"run: {message}"
    found = refused(capsys, "run", "rows.bnnsgraph", "--input", "i=i.npy", "--device", "gpu:7")
    assert found.startswith("run: --device must be a device of this ")


# export


def test_export_as_artifact(capsys: pytest.CaptureFixture[str]) -> None:
    from jax import export

    lines = ok(capsys, "export", "rows.bnnsgraph", "--to", "jax-export", "--platform", "cpu", "--platform", "tpu").splitlines()
    assert lines[0].startswith("wrote rows.jax_export (")
    code = lines[1].partition("to run it: ")[2]
    scope: dict[str, Any] = {"i": np.array([2, 1], np.int32)}
    statements, _, expression = code.rpartition("; ")
    exec(statements, scope)
    np.testing.assert_array_equal(eval(expression, scope)["rows"], TABLE[[2, 1]])
    assert export.deserialize(bytearray(Path("rows.jax_export").read_bytes())).platforms == ("cpu", "tpu")


def test_export_as_stablehlo(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ok(capsys, "export", "rows.bnnsgraph", "--to", "stablehlo", "--size", "n=4").splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "wrote rows.mlir",
        "  its last result is 0, or more where an index is out of bounds",
    ]
    assert "tensor<4xi32>" in Path("rows.mlir").read_text(encoding="utf-8")
    text = ok(capsys, "export", "all.bnnsgraph", "--to", "stablehlo", "--shape", "x=3x2", "--shape", "total=5", "--output", "-")
    assert "tensor<3x2xf32>" in text
    assert "tensor<5xbf16>" in text


def test_export_as_swift(capsys: pytest.CaptureFixture[str]) -> None:
    graph = bg.load("rows.bnnsgraph")
    lines = ok(capsys, "export", "rows.bnnsgraph", "--to", "swift", "--output", "Rows.swift").splitlines()
    assert lines[0].startswith("wrote Rows.swift (")
    assert lines[1] == "on Apple's side:"
    assert [line.strip() for line in lines[2:]] == str(bg.portability(graph)).splitlines()
    assert "func makeRows(" in Path("Rows.swift").read_text(encoding="utf-8")
    assert main(["export", "rows.bnnsgraph", "--to", "swift", "--output", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out == graph.to_swift()
    assert printed.err.startswith("on Apple's side:\n  differs ")

    def large(b: bg.Builder) -> bg.Tensor[Any]:
        return b.argument("x", bg.Float32, [100]) + np.arange(100, dtype=np.float32)

    bg.save(recorded(large), "large.bnnsgraph")
    lines = ok(capsys, "export", "large.bnnsgraph", "--to", "swift").splitlines()
    assert [line.split(" (")[0] for line in lines[:2]] == ["wrote large.swift", "wrote large.weights"]
    assert Path("large.weights").stat().st_size == 400
    assert main(["export", "large.bnnsgraph", "--to", "swift", "--output", "-"]) == 0
    assert "its constants come with a file: --output NAME.swift writes NAME.weights too" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        ("rows.bnnsgraph --to stablehlo", "every size must be given, got none for i: int32[n]; add --size n=8", 2),
        ("all.bnnsgraph --to stablehlo --size n=2", "every size must be given, got none for total: bfloat16[-1]; add --shape total=8", 2),
        ("rows.bnnsgraph --to stablehlo --size m=2", "--size must name named sizes of the graph (n), got 'm'", 2),
        ("rows.bnnsgraph --to stablehlo --shape m=2", "--shape must name arguments of the graph (i), got 'm'", 2),
        ("rows.bnnsgraph --to stablehlo --shape i=2,3", "argument 'i' must have rank 1, [n], got rank 2, [2, 3]", 2),
        ("rows.bnnsgraph --to swift --size n=2", "--size must be given with --to stablehlo, got it with --to swift", 2),
        ("rows.bnnsgraph --to swift --platform cpu", "--platform must be given with --to jax-export, got it with --to swift", 2),
        ("rows.bnnsgraph --to jax-export --output -", "--output must be a file for --to jax-export, which is no text, got -", 2),
        ("rows.bnnsgraph --to swift --output out.txt", "the file to write must end with .swift, got 'out.txt'", 2),
        ("rows.bnnsgraph --to stablehlo --size n", "argument --size: must be a name and a number, such as batch=8, got 'n' (see ", 2),
        ("rows.bnnsgraph --to stablehlo --shape i=x", "argument --shape: must be an argument and its sizes, such as x=8,128, got 'i=x'", 2),
        ("rows.bnnsgraph", "the following arguments are required: --to (see ", 2),
        ("wide.bnnsgraph --to swift", "", 1),
        ("short.bnnsgraph --to jax-export", "--constraint must say enough of the flexible sizes to export, such as --constraint 'length >= 2', got ", 1),
    ],
)  # fmt: skip
def test_exports_that_are_refused(words: str, message: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    bg.save(recorded(lambda b: b.argument("x", bg.Float64, [2]) + 1), "wide.bnnsgraph")
    bg.save(recorded(lambda b: b.argument("x", bg.Float32, ["length"])[1:-1]), "short.bnnsgraph")
    assert refused(capsys, "export", *words.split(), code=code).removeprefix("export: ").startswith(message)


# bench


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ok(capsys, "bench", "rows.bnnsgraph", "--size", "n=100", "--seconds", "0").splitlines()
    rows = dict(line.split(None, 1) for line in lines)
    assert list(rows) == ["graph", "device", "input", "compile", "run", "FLOPs", "bytes", "memory"]
    assert rows["graph"] == "Graph(i -> rows; 3 nodes)"
    assert rows["input"] == "i: int32[100], random from 0 to 7"  # the table has 10 rows
    number = r"[\d.]+ (?:µs|ms|s)"
    assert re.fullmatch(f"{number} median, quartiles {number} and {number}, 5 runs", rows["run"])


def test_bench_of_every_kind_of_argument(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "all.bnnsgraph", "--input", "i=[1, 0]", "--shape", "total=4", "--seconds", "0", "--device", "cpu"]
    lines = [line.split(None, 1)[1] for line in ok(capsys, *words).splitlines() if line.startswith("input")]
    assert lines == [
        "scale: float32[], random, normal",
        "x: float32[2, 2], random, normal",
        "i: int64[2], given",
        "total: bfloat16[4], random, normal",
    ]


def test_benches_that_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "bench", "rows.bnnsgraph") == (
        "bench: every size must be given, got none for i: int32[n]; add --size n=8"
    )
    assert refused(capsys, "bench", "rows.bnnsgraph", "--seconds=-1").startswith(
        "bench: argument --seconds: must be a number of seconds, got '-1'"
    )
    message = refused(capsys, "bench", "rows.bnnsgraph", "--input", "i=outside.npy", code=1)
    assert message.startswith("bench: Gather(axis=0): indices must be in [-10, 10)")


def test_runs_are_repeated_for_a_time() -> None:
    ticks = itertools.count()
    assert bench.repeated(lambda: float(next(ticks)), 0) == [2, 3, 4, 5, 6]
    assert len(bench.repeated(lambda: 0.0, 0.01)) > 5


# doctor


def test_doctor_finds_no_wrong_answer_here(capsys: pytest.CaptureFixture[str]) -> None:
    """Each fault is tried, and the package gives the right answer whether the compiler does or not."""
    text = ok(capsys, "doctor")
    assert f"bnnsgraph {bg.__version__} in " in text
    assert "  cpu:0  " in text.split("\ndevices")[1]
    faults = text.split("what may go wrong\n")[1].splitlines()
    assert len(faults) == 8
    assert {line.split()[1] for line in faults} == {"right"}
    assert {line.split()[0] for line in faults} <= {"wrong", "right"}  # JAX's answers, which differ between its versions
    assert faults[0].endswith("  right      the largest of some thousand floats is a number where one is NaN")


def test_doctor_fails_where_a_guard_does(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "findings", lambda: iter([probes.Finding("a", False, True), probes.Finding("b", True, False)]))
    assert main(["doctor"]) == 1
    printed = capsys.readouterr()
    assert printed.out.endswith("  wrong  right      a\n  right  wrong      b\n")
    assert "every answer of bnnsgraph must be right, got 1 wrong" in printed.err


def test_doctor_without_a_device(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    def none() -> None:
        raise RuntimeError("Unable to initialize backend 'tpu'")

    monkeypatch.setattr(jax, "devices", none)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err.endswith("JAX must find a device, got: Unable to initialize backend 'tpu'\n")


def test_extras_that_are_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"safetensors": "0.10.1", "tokenizers": "0.19.9"}

    def version(name: str) -> str:
        if name not in versions:
            raise importlib.metadata.PackageNotFoundError
        return versions[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert doctor.extras()["demo"] == ["tokenizers>=0.20 (not 0.19.9)", "wordllama"]
    monkeypatch.setattr(bg, "__file__", os.path.join("absent", "bnnsgraph", "__init__.py"))
    lines = ["numpy>=2.0", "safetensors>=0.4; extra == 'demo'", "bnnsgraph[demo]; extra == 'test'", "pytest; extra == 'test'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: lines)
    assert doctor.extras() == {"demo": [], "test": ["pytest"]}
    del versions["safetensors"]
    assert doctor.extras() == {"demo": ["safetensors"], "test": ["safetensors", "pytest"]}


# The page of the documentation


def test_the_commands_of_the_page_print_what_it_shows(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block of commands prints the text below it, where ``...`` stands for anything."""
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    Path("embed.py").write_text(program, encoding="utf-8")
    runpy.run_path("embed.py", run_name="__main__")
    blocks = re.findall(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == page.count("```sh") == 7
    monkeypatch.setattr(sys, "argv", ["bnnsgraph"])
    for commands, shown in blocks:
        for line in commands.splitlines():
            program, *words = shlex.split(line)
            assert program == "bnnsgraph"
            assert main(words) in (0, 1)
        printed = capsys.readouterr()
        assert doctest.OutputChecker().check_output(shown, printed.out + printed.err, doctest.ELLIPSIS), printed.out
    listed = re.findall(r"^\| `(\w+)[^|]*\|", page, re.MULTILINE)
    assert listed == NAMES

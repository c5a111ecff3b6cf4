"""Which predicate a name means, and what files may say of each other's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamlog.compiler import Parsed, compile_file
from streamlog.syntax.ast import Atom, Test
from streamlog.syntax.pretty import pretty
from streamlog.syntax.root import PROJECT
from streamlog.syntax.walk import walk

Files = Callable[..., Path]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def write(main: str, **others: str) -> Path:
        for name, text in others.items():
            path = tmp_path / f"{name.replace('__', '/')}.slog"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        path = tmp_path / "main.slog"
        path.write_text(main, encoding="utf-8")
        return path

    return write


def statements(path: Path) -> list[str]:
    compiled = compile_file(path, until="load")
    assert isinstance(compiled, Parsed) and compiled.ok, compiled.diagnostics
    return [pretty(s) for s in compiled.module.statements]


def errors(path: Path) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in compile_file(path).diagnostics if d.is_error]


LIB = "export p. p(T, X) <- q(T, X), s(T, X). q(T, X) <- s(T, X), not w(T, X)."


def test_names_of_a_file_under_an_alias(files: Files) -> None:
    main = files(
        'use "lib.slog" as m. o(T, X) <- m.p(T, X), q(T, X). q(T, X) <- m.s(T, X).', lib=LIB
    )
    assert statements(main)[1:] == [
        "m.p(T, X) <- m.q(T, X), m.s(T, X).",
        "m.q(T, X) <- m.s(T, X), not m.w(T, X).",
        "o(T, X) <- m.p(T, X), q(T, X).",
        "q(T, X) <- m.s(T, X).",
    ]


def test_names_without_an_alias_are_shared_in_both_directions(files: Files) -> None:
    main = files('use "lib.slog". o(T, X) <- q(T, X). w(1, 2).', lib=LIB)
    assert statements(main)[2:] == [
        "q(T, X) <- s(T, X), not w(T, X).",
        "o(T, X) <- q(T, X).",
        "w(1, 2).",
    ]


def test_a_file_is_read_once_and_has_its_shortest_name(files: Files) -> None:
    main = files(
        'use "a.slog" as a. use "b.slog" as b. o(T) <- a.s(T), b.s(T), b.p(T).',
        a='use "common.slog". p(T) <- s(T).',
        b='use "common.slog". use "deep.slog" as deep. export p. p(T) <- s(T), deep.p(T).',
        common="stream s(T: time).",
        deep='use "common.slog" as c. export p. p(T) <- c.s(T), t(T).',
    )
    assert statements(main) == [
        "stream a.s(T: time).",
        "a.p(T) <- a.s(T).",
        "export b.deep.p.",
        "b.deep.p(T) <- a.s(T), b.deep.t(T).",
        "export b.p.",
        "b.p(T) <- a.s(T), b.deep.p(T).",
        "o(T) <- a.s(T), a.s(T), b.p(T).",
    ]


def test_files_that_use_each_other(files: Files) -> None:
    main = files(
        'use "a.slog" as a. export s. s(T) <- r(T). o(T) <- a.p(T).',
        a='use "main.slog" as back. export p. p(T) <- back.s(T), back.r(T).',
    )
    assert "a.p(T) <- s(T), r(T)." in statements(main)


def test_a_long_chain_of_files(files: Files) -> None:
    links = {f"f{n}": f'use "f{n + 1}.slog".' for n in range(600)}
    main = files('use "f0.slog".', **links, f600="p(1).")
    assert statements(main) == ["p(1)."]
    aliased = {name: text.replace('.slog".', '.slog" as m.') for name, text in links.items()}
    files(main.read_text(), **aliased)
    assert statements(main) == [f"{'m.' * 600}p(1)."]


def test_tests_say_names_as_rules_do(files: Files) -> None:
    test = 'test "x" { m.s(1, 2). given m.s from "s.csv". expect m.p(1, 2). expect none m.p. }'
    inner = 'test "y" { s(1, 2). expect q(1, 2). }'
    module = compile_file(files(f'use "lib.slog" as m. {test}', lib=f"{LIB} {inner}")).module
    tests = [s for s in module.statements if isinstance(s, Test)]
    assert [a.pred for a in walk(tests) if isinstance(a, Atom)] == ["m.s", "m.q", "m.s", "m.p"]


def test_timelines_of_used_files(files: Files) -> None:
    lib = "stream report(a: int, b: int) progress a, b. p(T) <- report(T, _)."
    test = 'test "x" { advance m.report.b to 3. advance m.report to 4. }'
    aliased = statements(files(f'use "lib.slog" as m. {test}', lib=lib))
    assert aliased[-1].split("\n")[1:3] == [
        "    advance m.report.b to 3.",
        "    advance m.report to 4.",
    ]
    shared = statements(files(f'use "lib.slog". use "lib.slog" as m. {test}', lib=lib))
    assert "advance report.b to 3." in shared[-1]
    unknown = errors(files(f'use "lib.slog" as m. {test.replace("m.", "n.")}', lib=lib))
    assert [code for code, _ in unknown] != []


def test_outputs_and_queries_are_those_of_the_program(files: Files) -> None:
    lib = f"{LIB} output q. ?q(T, X)."
    aliased = compile_file(files('use "lib.slog" as m. output m.q. ?m.q(T, X).', lib=lib)).schema
    assert ([p.name for p in aliased.outputs], len(aliased.queries)) == (["m.q"], 1)
    plain = compile_file(files('use "lib.slog".', lib=lib)).schema
    assert ([p.name for p in plain.outputs], len(plain.queries)) == (["q"], 1)


@pytest.mark.parametrize(
    ("main", "lib", "expected"),
    [
        ("o(T, X) <- m.q(T, X).", LIB, "`q` is private to"),
        ("m.q(T, X) <- t(T, X).", LIB, "`q` is private to"),
        ('test "x" { expect m.q(1, 2). }', LIB, "`q` is private to"),
        ("output m.q.", LIB, "`q` is private to"),
        ("o(T, X) <- m.o(T, X).", LIB, "has no predicate `o`"),
        ("o(T, X) <- n.p(T, X).", LIB, "no file is used as `n` here"),
        ("o(T, X) <- m.a.p(T, X).", LIB, "what `m` uses as `a` is private to it"),
        ("m(T, X) <- m.p(T, X).", LIB, "`m` is both an alias and a predicate"),
        ("o(T, X) <- m.p(T, X), m(X).", LIB, "`m` is both an alias and a predicate"),
        ("m.p(T, X) <- t(T, X).", LIB, "`m.p` belongs to another file"),
        ("m.p(1, 2).", LIB, "`m.p` belongs to another file"),
        ("extend p. p(T, X) <- t(T, X).", LIB, "no other file defines `p`"),
        ("extend m.x.", LIB, "has no predicate `x`"),
        ("output m.p.", f"{LIB} export x.", "there is no predicate `m.x` in this program"),
        (
            "o(T, X) <- m.p(T, X).",
            f'{LIB} use "main.slog". o(1, 2).',
            "`o` is defined by two files",
        ),
    ],
)
def test_what_is_refused(files: Files, main: str, lib: str, expected: str) -> None:
    (found,) = errors(files(f'use "lib.slog" as m. {main}', lib=lib))
    assert expected in found[1]


@pytest.mark.parametrize(
    ("main", "lib"),
    [
        ("p(T, X) <- t(T, X).", LIB),
        ("p(1, 2).", LIB),
        ('use "other.slog".', LIB),
        ("s(1, 2).", f"{LIB} s(2, 3)."),
    ],
)
def test_what_two_files_define_is_an_error(files: Files, main: str, lib: str) -> None:
    main_path = files(f'use "lib.slog". {main}', lib=lib, other="p(T, X) <- t(T, X).")
    (found,) = [d for d in compile_file(main_path).diagnostics if d.is_error]
    assert found.code == "SL0208"
    assert len({label.span.source.path for label in found.labels}) == 2
    name = "s" if "s(2" in lib else "p"
    main_path.write_text(f"extend {name}. {main_path.read_text()}")
    if "other" in main:  # that one has to say it
        other = main_path.with_name("other.slog")
        other.write_text(f"extend p. {other.read_text()}")
        main_path.write_text(main_path.read_text().removeprefix("extend p. "))
    assert errors(main_path) == []


def test_the_same_helper_in_files_under_aliases_is_two_predicates(files: Files) -> None:
    helper = "output o{0}. o{0}(T) <- h(T). h(T) <- s{0}(T)."
    main = files(
        'use "a.slog" as a. use "b.slog" as b. o(T) <- a.o1(T), b.o2(T).',
        a=helper.format(1),
        b=helper.format(2),
    )
    assert [s for s in statements(main) if ".h(T) <-" in s] == [
        "a.h(T) <- a.s1(T).",
        "b.h(T) <- b.s2(T).",
    ]
    main.write_text('use "a.slog". use "b.slog". o(T) <- o1(T), o2(T).')
    assert [code for code, _ in errors(main)] == ["SL0208"]


def test_facts_of_declared_inputs_are_data(files: Files) -> None:
    lib = "table w(x: int). w(1). output p. p(X) <- w(X), not v(X). table v(x: int)."
    assert errors(files('use "lib.slog". w(2). v(3).', lib=lib)) == []
    assert "m.w(2)." in statements(files('use "lib.slog" as m. m.w(2).', lib=lib))


def test_an_alias_of_two_files(files: Files) -> None:
    two = files('use "a.slog" as m. use "b.slog" as m. o(T) <- m.p(T).', a="output p.", b="")
    assert ("SL0208", "`m` stands for two files") in errors(two)
    inherited = files(
        'use "a.slog" as m. use "b.slog". o(T) <- m.p(T).',
        a="output p. p(T) <- s(T).",
        b='use "c.slog" as m.',
        c="",
    )
    assert errors(inherited) == [("SL0208", "`m` stands for two files")]


def test_what_cannot_be_read_is_the_only_error(files: Files) -> None:
    main = files('use "lib.slog" as m. o(T, X) <- m.p(T, X).', lib="export p. p(T, X) <- q(T X).")
    assert [code for code, _ in errors(main)] == ["SL0101"]


def test_a_missing_file_is_the_only_error(files: Files) -> None:
    missing = 'use "no.slog" as m. m.p(1). m.q(T) <- s(T). extend m.r. m.r(1).'
    assert [c for c, _ in errors(files(missing))] == ["SL0107"]
    assert [c for c, _ in errors(files('use "no.slog" as m. o(T) <- m.p(T).'))] == ["SL0107"]


def test_what_other_files_may_read_is_not_unread(files: Files) -> None:
    """Streams that a program does not need, and exports, of files that it uses."""
    lib = f"stream s(T: time, x: int). stream u(T: time). table v(x: int). {LIB}"
    for alias in ("", " as m"):
        name = "m.p" if alias else "p"
        path = files(f'use "lib.slog"{alias}. output o. o(T, X) <- {name}(T, X).', lib=lib)
        assert [d.code for d in compile_file(path).diagnostics] == []


def test_a_file_for_others_has_unread_helpers_all_the_same(files: Files) -> None:
    lib = "stream u(T: time). export p. p(T) <- s(T). q(T) <- s(T)."
    assert [d.message for d in compile_file(files(lib)).diagnostics] == ["nothing reads `q`"]


def test_what_is_exported_may_be_open(files: Files) -> None:
    lib = (
        "export recent, tried. recent(T, U) <- s(T0, U), T0 < T, T <= T0 + 5. tried(T) <- s(T, 1)."
    )
    assert errors(files(lib)) == []
    path = files('use "lib.slog" as m. output p. p(T) <- q(T, U), not m.recent(T, U).', lib=lib)
    assert errors(path) == []


def test_paths_count_from_the_root_of_a_project(files: Files, tmp_path: Path) -> None:
    rule = 'use "lib/a.slog" as a. output a.p.'
    files("", rules__main=rule, lib__a='use "lib/b.slog".', lib__b=LIB)
    main = tmp_path / "rules" / "main.slog"
    assert [code for code, _ in errors(main)] == ["SL0107"]
    (tmp_path / PROJECT).touch()
    assert errors(main) == []
    (tmp_path / "lib" / "a.slog").write_text('use "b.slog".')
    (found,) = [d for d in compile_file(main).diagnostics if d.code == "SL0107"]
    assert found.help == ('paths count from the root of the project: `use "lib/b.slog"`',)
    (tmp_path / "lib" / "a.slog").write_text('use "lib/b.slog".')
    (tmp_path / "lib" / PROJECT).touch()  # another project, whose files are no business of ours
    assert errors(main) == []


@pytest.mark.parametrize(
    "text",
    [
        "p(1).q(2).",
        "p.Q",
        "p(X) <- q(X), X = Y.r(1).",
        "output p.\nq(1).",
        "export(1). extend.",
        "o.\tp.",
    ],
)
def test_texts_without_qualified_names_are_read_as_before(files: Files, text: str) -> None:
    compiled = compile_file(files(text), until="load")
    assert not any("." in a.pred for a in walk(compiled.module.statements) if isinstance(a, Atom))

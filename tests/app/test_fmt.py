"""`streamlog fmt`: files in place, standard input through, broken files left alone."""

from __future__ import annotations

from importlib import import_module

import pytest

LOOSE = "p(T,X)<-q(T,X).\n"
TIDY = "p(T, X) <- q(T, X).\n"
BROKEN = "p(T) <- .\n"


def test_in_place(run, write) -> None:
    loose, tidy = write("rules/a.slog", LOOSE), write("rules/b.slog", TIDY)
    loose.chmod(0o640)
    before = tidy.stat()
    result = run("fmt", "rules")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "formatted rules/a.slog\n1 file changed, 1 file already in the standard form\n"
    )
    assert (loose.read_text(), tidy.read_text()) == (TIDY, TIDY)
    assert loose.stat().st_mode & 0o777 == 0o640
    assert (tidy.stat().st_mtime_ns, tidy.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert sorted(p.name for p in loose.parent.iterdir()) == ["a.slog", "b.slog"]


def test_a_link_stays_a_link(run, write, tmp_path) -> None:
    real = write("real.slog", LOOSE)
    link = tmp_path / "link.slog"
    link.symlink_to(real)
    assert run("fmt", "link.slog").exit_code == 0
    assert link.is_symlink()
    assert real.read_text() == TIDY


def test_a_link_that_leads_out_of_the_folder_is_left(run, write, tmp_path) -> None:
    outside, inside = write("outside.slog", LOOSE), write("rules/b/inside.slog", LOOSE)
    (tmp_path / "rules" / "a.slog").symlink_to(outside)
    (tmp_path / "rules" / "c.slog").symlink_to(inside)
    result = run("fmt", "rules")
    assert result.exit_code == 0
    assert "rules/a.slog is a link that leads out of rules: left unchanged\n" in result.stderr
    assert (outside.read_text(), inside.read_text()) == (LOOSE, TIDY)
    assert run("fmt", "rules/a.slog").exit_code == 0  # named, it is meant
    assert outside.read_text() == TIDY


def test_check_names_the_files_and_writes_nothing(run, write) -> None:
    loose = write("a.slog", LOOSE)
    write("b.slog", TIDY)
    result = run("fmt", "--check", "a.slog", "b.slog")
    assert result.exit_code == 1
    assert result.stderr == (
        "would format a.slog\n1 file would change, 1 file already in the standard form\n"
    )
    assert loose.read_text() == LOOSE
    assert run("fmt", "--check", "b.slog").exit_code == 0


@pytest.mark.parametrize(("options", "code"), [(["--diff"], 0), (["--diff", "--check"], 1)])
def test_diff(run, write, options: list[str], code: int) -> None:
    loose = write("a.slog", LOOSE.rstrip("\n"))
    result = run("fmt", *options, "a.slog")
    assert result.exit_code == code
    assert result.stdout == (
        "--- a.slog\n+++ a.slog\n@@ -1 +1 @@\n"
        "-p(T,X)<-q(T,X).\n\\ No newline at end of file\n"
        "+p(T, X) <- q(T, X).\n"
    )
    assert loose.read_text() == LOOSE.rstrip("\n")


def test_standard_input(run) -> None:
    result = run("fmt", "-", input=LOOSE)
    assert (result.exit_code, result.stdout, result.stderr) == (0, TIDY, "")
    checked = run("fmt", "--check", "-", input=LOOSE)
    assert (checked.exit_code, checked.stdout) == (1, "")
    assert "would format <stdin>" in checked.stderr


def test_a_broken_file_is_reported_and_left_alone(run, write) -> None:
    broken, loose = write("a.slog", BROKEN), write("b.slog", LOOSE)
    result = run("fmt", "a.slog", "b.slog")
    assert result.exit_code == 1
    assert "error[SL0101]" in result.stderr
    assert result.stderr.endswith("\n1 file changed, 1 error\n")
    assert (broken.read_text(), loose.read_text()) == (BROKEN, TIDY)


def test_broken_standard_input_gives_no_output(run) -> None:
    result = run("fmt", "-", input=BROKEN)
    assert (result.exit_code, result.stdout) == (1, "")


def test_a_file_that_is_no_text(run, tmp_path) -> None:
    (tmp_path / "a.slog").write_bytes(b"p(\xff).")
    result = run("fmt", "a.slog")
    assert result.exit_code == 1
    assert "error[SL0107]: `a.slog` is not UTF-8 text (byte 2)" in result.stderr


def test_windows_line_ends_and_marks_go(run, tmp_path) -> None:
    path = tmp_path / "a.slog"
    path.write_bytes(b"\xef\xbb\xbf" + TIDY.replace("\n", "\r\n").encode())
    assert run("fmt", "--check", "a.slog").exit_code == 1
    assert run("fmt", "a.slog").exit_code == 0
    assert path.read_bytes() == TIDY.encode()


def test_a_slip_of_the_formatter_harms_nobody(run, write, monkeypatch) -> None:
    formatter = import_module("streamlog.syntax.format")
    loose = write("a.slog", LOOSE)
    monkeypatch.setattr(formatter, "format_source", lambda *_: "other(T) <- q(T).\n")
    result = run("fmt", "a.slog")
    assert result.exit_code == 70
    assert "would mean something else" in result.stderr
    assert loose.read_text() == LOOSE


def test_a_failed_write_leaves_the_file_and_no_litter(run, write, monkeypatch) -> None:

    loose = write("rules/a.slog", LOOSE)

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copymode", no_room)
    result = run("fmt", "rules")
    assert (result.exit_code, result.stderr) == (2, "streamlog: No space left on device\n")
    assert [p.read_text() for p in loose.parent.iterdir()] == [LOOSE]

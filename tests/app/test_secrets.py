"""No message repeats a password that an address has in its options."""

from __future__ import annotations

import pytest

from streamlog.runtime.addresses import redacted

JAAS = 'org.example.PlainLoginModule required username="me" password="hunter2";'
OPTIONS = (
    "maxOffsetsPerTrigger=100&kafka.ssl.key.password=s3cr%20t&kafka.sasl.jaas.config="
    "org.example.PlainLoginModule+required+username%3D%22me%22+password%3D%22hunter2%22%3B"
)
ADDRESS = f"kafka://host:9092/s?{OPTIONS}"
SECRETS = ("hunter2", "s3cr%20t", "s3cr t")


def test_what_is_left_out() -> None:
    for text in (ADDRESS, f"no such '{ADDRESS}'", JAAS, "Invalid value hunter2, s3cr t"):
        hidden = redacted(text, [ADDRESS])
        assert not any(secret in hidden for secret in SECRETS)
        assert "…" in hidden
    assert (
        redacted("100 rows of kafka://host:9092/s", [ADDRESS]) == "100 rows of kafka://host:9092/s"
    )
    assert redacted("at s3a://me:pw@b/x", ["s3a://me:pw@b/x"]) == "at s3a://…@b/x"


def test_instances_hide_them(run, write) -> None:
    write("p.slog", "stream s(T: int).\noutput p.\np(T) <- s(T).\n")
    places = ("--engine", "spark", "--input", f"s={ADDRESS}", "--output", f"p={ADDRESS}&x=1")
    assert run("instance", "create", "one", "p.slog", *places).exit_code == 0
    for args in (
        ("instance", "status", "one"),
        ("instance", "list"),
        ("catalog",),
        ("instance", "create", "two", "p.slog", *places),
    ):
        shown = "".join(run(*args).output.split())
        assert not any(secret.replace(" ", "") in shown for secret in SECRETS), args


@pytest.mark.parametrize(
    "args",
    [
        ("--engine", "local", "--input", f"s={ADDRESS}"),
        ("--engine", "local", "--output", f"p={ADDRESS}"),
        ("--engine", "local", "--rejects", ADDRESS),
        ("--engine", "spark", "--input", f"s={ADDRESS}", "--output", f"p={ADDRESS}"),
        ("--engine", "spark", "--input", ADDRESS),
        ("--engine", "spark", "--input", f"s=kafka:/host/s?{OPTIONS}"),
        ("--engine", "spark", "--input", f"t={ADDRESS}"),
    ],
)
def test_of_the_command(run, write, args: tuple[str, ...]) -> None:
    write("p.slog", "stream s(T: int).\noutput p.\np(T) <- s(T).\n")
    result = run("run", "p.slog", *args)
    assert result.exit_code == 2
    assert not any(secret in result.output for secret in SECRETS)


def test_of_an_error_that_nobody_expects(run, write, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> int:
        raise ValueError(f"Invalid value {JAAS} for configuration sasl.jaas.config")

    monkeypatch.setattr("streamlog.app.run_base.execute", fail)
    write("p.slog", "stream s(T: int).\noutput p.\np(T) <- s(T).\n")
    result = run("run", "p.slog", "--engine", "spark", "--input", f"s={ADDRESS}")
    assert "Invalid value … for configuration sasl.jaas.config" in result.stderr
    assert "hunter2" not in result.output

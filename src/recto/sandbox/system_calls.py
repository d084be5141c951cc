"""Calls of the system that a command in a sandbox may not make, as the program that the kernel checks each call by.

What namespaces do not part is refused: the keys of whom we run as, the kernel's log and its inner machinery. So is
memory that nobody could count, and a file that would act with our rights when others run it later.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# What a mode may not have: the bits that make a program act as its owner or group.
SET_ID = 0o6000
# Without these flags nothing is made, and what stands in the place of a mode means nothing.
MAKING = 0o100 | 0o20000000
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER, MACHINE, ARGUMENTS = 0, 4, 16
# What `prctl` is asked for by who wants to outlive its parent, or to end with it.
PARENT_DEATH = 1
# Calls of another numbering, on the same machine.
OTHER_NUMBERS = 0x40000000


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """A machine's number, and those of its calls: refused ones; and at which argument others have flags and a mode."""

    number: int
    numbers: Mapping[str, int]
    modes: Mapping[int, int]
    makers: Mapping[int, tuple[int, int]]
    prctl: int


# Those that have the same number everywhere. Of some nobody can see here what they ask for.
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
    """The program, as bubblewrap takes it; None for a machine whose calls are not known here."""
    machine_calls = _MACHINES.get(machine or platform.machine())
    return None if machine_calls is None else b"".join(_steps(machine_calls))


def _steps(machine: _Machine) -> Iterator[bytes]:
    yield from (_step(LOAD, MACHINE), _step(EQUAL, machine.number, 1, 0), _refuse(errno.ENOSYS))
    yield from (_step(LOAD, NUMBER), _step(AT_LEAST, OTHER_NUMBERS, 0, 1), _refuse(errno.ENOSYS))
    for number in machine.numbers.values():
        # As on a system that does not have them: programs know what to do then.
        yield from (_step(EQUAL, number, 0, 1), _refuse(errno.ENOSYS))
    for number, mode in machine.modes.items():
        yield from (_step(EQUAL, number, 0, 4), *_judge_mode(mode))
    for number, (flags, mode) in machine.makers.items():
        yield from (_step(EQUAL, number, 0, 6), _argument(flags), _step(ANY_BIT, MAKING, 0, 3), *_judge_mode(mode))
    # The first process of a sandbox is in reach of the others: it ends with who started it, whatever they make of it.
    yield from (_step(EQUAL, machine.prctl, 0, 3), _argument(0), _step(EQUAL, PARENT_DEATH, 0, 1), _refuse(0))
    yield _step(RETURN, ALLOW)


def _judge_mode(place: int) -> tuple[bytes, ...]:
    return _argument(place), _step(ANY_BIT, SET_ID, 0, 1), _refuse(errno.EPERM), _step(RETURN, ALLOW)


def _argument(place: int) -> bytes:
    return _step(LOAD, ARGUMENTS + 8 * place)


def _refuse(number: int) -> bytes:
    return _step(RETURN, REFUSE | number)


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)

"""R15: which calls of the system a command may make, on each machine: the program is played as the kernel plays it."""

import errno
import os
import struct

import pytest

from recto.sandbox.bubblewrap import call_filter

ALLOWED, REJECTED_CALL, NOT_THERE = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
# It is told that all is well, and nothing was done.
UNKNOWN_CALL = 0x00050000
X86, ARM = ("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)
CALLS = [
    (X86, 1, (1, 0, 10), ALLOWED),  # write
    (X86, 90, (0, 0o755), ALLOWED),  # chmod
    (X86, 90, (0, 0o4755), REJECTED_CALL),
    (X86, 91, (0, 0o2755), REJECTED_CALL),  # fchmod
    (X86, 268, (0, 0, 0o6000), REJECTED_CALL),  # fchmodat
    (X86, 452, (0, 0, 0o4000), REJECTED_CALL),  # fchmodat2
    (X86, 2, (0, os.O_RDONLY, 0o4755), ALLOWED),  # open: what nobody reads
    (X86, 2, (0, 0o101, 0o644), ALLOWED),
    (X86, 2, (0, 0o101, 0o4755), REJECTED_CALL),
    (X86, 257, (0, 0, 0o101, 0o4755), REJECTED_CALL),  # openat
    (X86, 257, (0, 0, 0o20200001, 0o4755), REJECTED_CALL),
    (X86, 437, (0, 0, 0), NOT_THERE),  # openat2
    (X86, 250, (0, 0), NOT_THERE),  # keyctl
    (X86, 319, (0, 0), NOT_THERE),  # memfd_create
    (X86, 425, (0, 0), NOT_THERE),  # io_uring_setup
    (X86, 157, (1, 0), UNKNOWN_CALL),  # prctl: to go on without its parent
    (X86, 157, (15, 0), ALLOWED),  # a name of its own
    (X86, 0x40000000 + 90, (0, 0o4755), NOT_THERE),  # the same under another number
    (ARM, 64, (1, 0, 10), ALLOWED),  # write
    (ARM, 53, (0, 0, 0o4755), REJECTED_CALL),  # fchmodat
    (ARM, 56, (0, 0, 0o101, 0o4755), REJECTED_CALL),  # openat
    (ARM, 56, (0, 0, 0, 0o4755), ALLOWED),
    (ARM, 167, (1, 0), UNKNOWN_CALL),  # prctl
    (ARM, 219, (0, 0), NOT_THERE),  # keyctl
    (("x86_64", 0x40000003), 15, (0, 0o4755), NOT_THERE),  # a program of 32 bits
]


def played(program: bytes, data: bytes) -> int:
    """Return the kernel's decision."""
    steps, place, value = list(struct.iter_unpack("=HBBI", program)), 0, 0
    while True:
        code, if_so, if_not, number = steps[place]
        place += 1
        match code:
            case 0x20:
                value = struct.unpack_from("=I", data, number)[0]
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: value == number, 0x35: value >= number, 0x45: bool(value & number)}[code]
                place += if_so if holds else if_not
            case _:
                assert code == 0x06
                return number


@pytest.mark.parametrize(("machine", "number", "arguments", "decided"), CALLS)
def test_R15_calls_are_refused_that_namespaces_do_not_part(
    machine: tuple[str, int], number: int, arguments: tuple[int, ...], decided: int
):
    program = call_filter(machine[0])
    assert program
    padded = (*arguments, *([0] * (6 - len(arguments))))
    assert played(program, struct.pack("=IIQ6Q", number, machine[1], 0, *padded)) == decided


def test_R15_a_machine_that_is_not_known_has_no_such_program():
    assert call_filter("riscv64") is None

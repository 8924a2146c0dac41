"""Programs on an older kernel, or under a container's seccomp profile: a filter refuses some system calls."""

import ctypes
import errno
import platform
import struct

NEWEST_OF_LINUX_4_18 = 423  # since then each call has the same number on all machines
NEWEST = 470
NUMBERS = {"x86_64": {"setsockopt": 54, "getsockopt": 55, "madvise": 28, "mincore": 27, "ppoll": 271}, "aarch64": {"setsockopt": 208, "getsockopt": 209, "madvise": 233, "mincore": 232, "ppoll": 73}}
OPTION_ARGUMENT = {"setsockopt": 2, "getsockopt": 2, "madvise": 2}
PIDFD_SEND_SIGNAL, PIDFD_OPEN, EPOLL_PWAIT2 = 424, 434, 441
SO_PEERPIDFD, SO_PASSRIGHTS = 77, 83
MADV_POPULATE_READ, MADV_POPULATE_WRITE = 22, 23

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
SECCOMP_MODE_FILTER = 2
SECCOMP_RET_ERRNO, SECCOMP_RET_ALLOW = 0x00050000, 0x7FFF0000
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF
ARGUMENTS_AT = 16  # in struct seccomp_data; the number of the call is at 0


def statement(code, value, on_true=0, on_false=0):
    return struct.pack("=HBBI", code, on_true, on_false, value)


def call(number, error=errno.ENOSYS):
    """A filter's part that refuses one call."""
    return statement(LOAD, 0) + statement(IF_EQUAL, number, 0, 1) + statement(RETURN, SECCOMP_RET_ERRNO | error)


def option(name, value, error):
    """... that refuses one option of a call."""
    return (statement(LOAD, 0) + statement(IF_EQUAL, NUMBERS[platform.machine()][name], 0, 3) +
            statement(LOAD, ARGUMENTS_AT + 8 * OPTION_ARGUMENT[name]) + statement(IF_EQUAL, value, 0, 1) +
            statement(RETURN, SECCOMP_RET_ERRNO | error))


def all_newer():
    return statement(LOAD, 0) + statement(IF_AT_LEAST, NEWEST_OF_LINUX_4_18 + 1, 0, 1) + statement(RETURN, SECCOMP_RET_ERRNO | errno.ENOSYS)


NEW_OPTIONS = (option("getsockopt", SO_PEERPIDFD, errno.ENOPROTOOPT) + option("setsockopt", SO_PASSRIGHTS, errno.ENOPROTOOPT) +
               option("madvise", MADV_POPULATE_READ, errno.EINVAL) + option("madvise", MADV_POPULATE_WRITE, errno.EINVAL))


def refusing(*parts):
    """For preexec_fn: the program that this process executes gets the parts' errors."""
    program = b"".join(parts) + statement(RETURN, SECCOMP_RET_ALLOW)
    code = ctypes.create_string_buffer(program, len(program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        _ = code  # the head points at it
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no seccomp filter")

    return install

"""Restricts a server that listens on all addresses to this machine.

Reverb's server accepts a port but no address. On Linux every socket can have a filter,
a small program in the kernel that checks each packet and drops those that it does not
accept; this needs no privileges. Packets of other machines arrive at an interface other
than the loopback one and are dropped, as if no server listened.
"""

import contextlib
import ctypes
import os
import socket
import struct

# From Linux's headers: asm-generic/socket.h, and linux/filter.h for the program.
_SO_ATTACH_FILTER = 26
_LOAD_WORD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_INTERFACE = 0xFFFFF000 + 8  # SKF_AD_OFF + SKF_AD_IFINDEX: the packet's interface.
_WHOLE_PACKET = 0xFFFFFFFF


def restrict(port: int, interface: int | None = None) -> None:
  """Drops packets that reach a port of this process by any other interface.

  Later connections inherit the filter. This machine's own packets arrive at the
  loopback interface for each of its addresses.

  Args:
    port: at which this process listens, for TCP.
    interface: its index; None: the loopback interface's.

  Raises:
    OSError: if the system has no such filters, or no socket of this process listens at
      the port.
  """
  if interface is None:
    interface = socket.if_nametoindex("lo")
  program = (
    struct.pack("HBBI", _LOAD_WORD, 0, 0, _INTERFACE)
    + struct.pack("HBBI", _JUMP_IF_EQUAL, 0, 1, interface)
    + struct.pack("HBBI", _RETURN, 0, 0, _WHOLE_PACKET)
    + struct.pack("HBBI", _RETURN, 0, 0, 0)
  )
  buffer = ctypes.create_string_buffer(program, len(program))
  # `struct sock_fprog`: the number of instructions, and their address.
  option = struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer))
  with contextlib.ExitStack() as stack:
    sockets = [stack.enter_context(copy) for copy in listening(port)]
    if not sockets:
      raise OSError(f"no socket of this process listens at port {port}.")
    for copy in sockets:
      copy.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, option)


def listening(port: int) -> list[socket.socket]:
  """Duplicates of this process's sockets that listen at the port."""
  sockets = []
  for name in os.listdir("/proc/self/fd"):
    with contextlib.suppress(OSError):
      if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
        continue
      copy = socket.socket(fileno=os.dup(int(name)))
      listens = (
        copy.family in (socket.AF_INET, socket.AF_INET6)
        and copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        and copy.getsockname()[1] == port
      )
      if listens:
        sockets.append(copy)
      else:
        copy.close()
  return sockets

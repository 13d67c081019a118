/**
 * Two sockets that are connected to each other, one of them for another
 * process: a child that inherits it, or one that is sent it. They have no name,
 * so no other process can connect.
 *
 * @module
 */

import { SOCK_SEQPACKET, SOCK_STREAM, socketPair } from "../libc/sockets.ts";
import { cannotWait } from "../libc/system_error.ts";
import { StreamDescriptor } from "../stream/stream_descriptor.ts";
import { PacketSocket, type System, system } from "./packet_socket.ts";

const F_SETFD = 2;

/** One end is ours; the other is a descriptor, to be passed on and closed. */
export interface SocketPair<Socket> {
  readonly near: Socket;
  readonly far: number;
}

/** @throws A system error with its `code`. */
export function packetPair(): SocketPair<PacketSocket> {
  const machine = required();
  const [near, far] = socketPair(machine.library, SOCK_SEQPACKET);
  return { near: new PacketSocket(machine, near), far };
}

/** @throws A system error with its `code`. */
export function streamPair(): SocketPair<StreamDescriptor> {
  const [near, far] = socketPair(required().library, SOCK_STREAM);
  return { near: streamOf(near), far };
}

/** The end that was inherited. @throws A system error with its `code`. */
export function packetSocketOf(descriptor: number): PacketSocket {
  const machine = required();
  machine.library.fcntl(descriptor, F_SETFD, 1);
  return new PacketSocket(machine, descriptor);
}

/** The end that was sent. @throws A system error with its `code`. */
export function streamOf(descriptor: number): StreamDescriptor {
  const { library, poller } = required();
  return new StreamDescriptor(library, poller, descriptor, {
    isTcp: false,
    mayRead: true,
    isPrompt: true,
    remoteAddress: "unix",
    localAddress: "unix",
  });
}

/** Children that start during the call inherit a descriptor. */
export function inherited<T>(descriptor: number, start: () => T): T {
  const { library } = required();
  library.fcntl(descriptor, F_SETFD, 0);
  try {
    return start();
  } finally {
    library.fcntl(descriptor, F_SETFD, 1);
  }
}

/** @throws A system error: sockets are the platform's. */
function required(): System {
  const machine = system();
  if (machine === undefined) throw cannotWait();
  return machine;
}

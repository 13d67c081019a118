/**
 * Sockets over which processes of one machine exchange descriptors: each packet
 * is JSON, and may carry some.
 *
 * User ids decide who may connect: the kernel reports the other process's, and
 * only our own and root's are trusted. SOCK_SEQPACKET keeps packets apart, so
 * there is nothing to be framed.
 *
 * @module
 */

import {
  receiveDescriptors,
  sendDescriptors,
} from "../libc/descriptor_messages.ts";
import { lastError, type LibC, openLibc } from "../libc/libc.ts";
import {
  type PeerCredentials,
  peerCredentials,
} from "../libc/peer_credentials.ts";
import {
  acceptSocket,
  AF_UNIX,
  openSocket,
  SOCK_SEQPACKET,
} from "../libc/sockets.ts";
import { cannotWait, Errno, systemError } from "../libc/system_error.ts";
import { ABSTRACT, encodeUnixName } from "../libc/unix_address.ts";
import {
  type Pollable,
  type Poller,
  Ready,
  sharedPoller,
} from "../poll/poller.ts";

const BACKLOG = 16;
const OWNERS_ONLY = 0o600;

/**
 * Connections accepted in a row; then others have their turn. Any process on
 * the machine may connect to a name of the abstract namespace, again and again.
 */
export const ACCEPTS_PER_TURN = 8;

/** The content of one packet; the receiver checks the sender. */
export type HandoverFields = Readonly<Record<string, unknown>>;

/** A packet that came. */
export interface HandoverPacket {
  readonly words: HandoverFields;
  /** Open here, and the receiver's to close. */
  readonly descriptors: readonly number[];
}

/** Whether a process is trusted with our sockets. */
export function isTrusted({ uid }: PeerCredentials): boolean {
  return uid === 0 || uid === Deno.uid();
}

/** What sockets of this file need of the machine. */
export interface System {
  readonly library: LibC;
  readonly poller: Poller;
}

/** @returns `undefined` where sockets are the platform's. */
export function system(): System | undefined {
  const [library, poller] = [openLibc(), sharedPoller()];
  return library && poller && { library, poller };
}

/** One end of a conversation. */
export class PacketSocket implements Pollable {
  /** The process at the other end, as the kernel knows it. */
  readonly peer: PeerCredentials;
  #waiting: PromiseWithResolvers<HandoverPacket | null> | undefined;
  /** The last packet's, as that of each connection for a worker is the same. */
  #text = "";
  #words: HandoverFields | undefined;
  #isClosed = false;

  /**
   * @throws {Error} The poller cannot wait for it; the descriptor is closed
   *   then.
   */
  constructor(
    private readonly system: System,
    private readonly descriptor: number,
  ) {
    this.peer = peerCredentials(system.library, descriptor) ?? NOBODY;
    const interest = Ready.READ | Ready.PEER_END | Ready.EDGE;
    if (system.poller.add(descriptor, interest, this)) return;
    system.library.close(descriptor);
    throw cannotWait();
  }

  /**
   * The next packet. One call at a time.
   *
   * @returns `null`: the other process has gone, or sent an unknown packet.
   */
  receive(): Promise<HandoverPacket | null> {
    const packet = this.#receiveNow();
    if (packet !== undefined) return Promise.resolve(packet);
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  /**
   * The same, from a peer that has no descriptors to give: those that come are
   * closed.
   *
   * @returns As {@linkcode receive}.
   */
  async receiveFields(): Promise<HandoverFields | null> {
    const packet = await this.receive();
    if (packet === null) return null;
    for (const descriptor of packet.descriptors) {
      this.system.library.close(descriptor);
    }
    return packet.words;
  }

  /** @returns False: the other process has gone, or does not listen. */
  send(words: HandoverFields, descriptors: readonly number[] = []): boolean {
    if (this.#isClosed) return false;
    const { library } = this.system;
    const text = JSON.stringify(words);
    try {
      return sendDescriptors(library, this.descriptor, { text, descriptors });
    } catch {
      return false;
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    void this.system.poller.close(this.descriptor);
    this.#waiting?.resolve(null);
    this.#waiting = undefined;
  }

  onReady(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const packet = this.#receiveNow();
    if (packet === undefined) return;
    this.#waiting = undefined;
    waiting.resolve(packet);
  }

  onFault(): void {
    this.close();
  }

  /** @returns `undefined`: there is none yet. */
  #receiveNow(): HandoverPacket | null | undefined {
    if (this.#isClosed) return null;
    const { library } = this.system;
    try {
      const message = receiveDescriptors(library, this.descriptor);
      if (message === null || message === undefined) return message;
      const { text, descriptors } = message;
      if (text !== this.#text) this.#words = fieldsOf(text);
      this.#text = text;
      const words = this.#words;
      if (words !== undefined) return { words, descriptors };
      for (const descriptor of descriptors) library.close(descriptor);
      return null;
    } catch {
      return null;
    }
  }
}

/** The address for other processes. */
export class PacketListener implements Pollable {
  #isClosed = false;

  private constructor(
    private readonly system: System,
    private readonly descriptor: number,
    private readonly path: string | undefined,
    private readonly onSocket: (socket: PacketSocket) => void,
  ) {
    // Edge-triggered: without a free descriptor to accept with, a level would
    // be reported again and again.
    const interest = Ready.READ | Ready.EDGE;
    if (system.poller.add(descriptor, interest, this)) return;
    system.library.close(descriptor);
    throw cannotWait();
  }

  /**
   * Only its owner may connect to a path. A path without a listener is removed.
   *
   * @returns `undefined` without a C library.
   * @throws A system error with its `code`.
   */
  static open(
    address: string,
    onSocket: (socket: PacketSocket) => void,
  ): PacketListener | undefined {
    const machine = system();
    if (machine === undefined) return undefined;
    const { library } = machine;
    const isPath = !address.startsWith(ABSTRACT);
    const name = encode(address);
    const descriptor = openSocket(library, AF_UNIX, SOCK_SEQPACKET);
    if (isPath) removeLeftOver(address);
    // Linux binds with the modes that the socket has before; a path could be a
    // link of another user by the time that they were changed there.
    const isUp = library.fchmod(descriptor, OWNERS_ONLY) === 0 &&
      library.bind(descriptor, name, name.length) === 0;
    const error = lastError(library);
    if (isUp && library.listen(descriptor, BACKLOG) === 0) {
      const path = isPath ? address : undefined;
      return new PacketListener(machine, descriptor, path, onSocket);
    }
    library.close(descriptor);
    throw systemError(error);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // First: once there is no listener, the path may be another process's.
    if (this.path !== undefined) removeSocket(this.path);
    void this.system.poller.close(this.descriptor);
  }

  onReady(): void {
    const { library, poller } = this.system;
    for (let count = 0; !this.#isClosed; count++) {
      if (count === ACCEPTS_PER_TURN) return poller.goOn(this);
      const accepted = acceptSocket(library, this.descriptor);
      if (accepted < 0) return;
      const socket = new PacketSocket(this.system, accepted);
      if (isTrusted(socket.peer)) this.onSocket(socket);
      else socket.close();
    }
  }

  onFault(): void {}
}

/**
 * Connects to an address.
 *
 * @returns `undefined`: there is no listener.
 * @throws A system error with its `code`, such as EACCES.
 */
export function connectPackets(address: string): PacketSocket | undefined {
  const machine = system();
  if (machine === undefined) return undefined;
  const { library } = machine;
  const name = encode(address);
  const descriptor = openSocket(library, AF_UNIX, SOCK_SEQPACKET);
  if (library.connect(descriptor, name, name.length) === 0) {
    return new PacketSocket(machine, descriptor);
  }
  const error = lastError(library);
  library.close(descriptor);
  if (error === ENOENT || error === Errno.ECONNREFUSED) return undefined;
  throw systemError(error);
}

const ENOENT = 2;

/** @throws A system error: no such name can be. */
function encode(address: string): Uint8Array<ArrayBuffer> {
  const name = encodeUnixName(address);
  if (name === undefined) throw systemError(ENAMETOOLONG);
  return name;
}

const ENAMETOOLONG = 36;

/** A socket with a listener stays, and cannot be bound. */
function removeLeftOver(path: string): void {
  let other: PacketSocket | undefined;
  try {
    other = connectPackets(path);
  } catch {
    // Not known here, so it must not be removed.
    return;
  }
  if (other === undefined) removeSocket(path);
  else other.close();
}

function removeSocket(path: string): void {
  try {
    if (Deno.lstatSync(path).isSocket) Deno.removeSync(path);
  } catch {
    // There is none, or it is not ours: bind(2) reports that.
  }
}

function fieldsOf(text: string): HandoverFields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    return isObject ? value as HandoverFields : undefined;
  } catch {
    return undefined;
  }
}

/** No process has that id. */
const NOBODY: PeerCredentials = { pid: 0, uid: -1 };

/**
 * A UDP socket that costs little per datagram.
 *
 * `node:dgram` makes a buffer of 64 KiB for each datagram that comes and two
 * copies of each that goes. `Deno.listenDatagram` reads into one buffer of ours,
 * but is there only under `--unstable-net`, which our launchers give and a
 * program that embeds us may not: so this takes what it finds.
 *
 * @module
 */

import { createSocket } from "node:dgram";
import { plainOctets } from "./octet_socket.ts";

/** Where a datagram goes to or comes from. */
export interface DatagramAddress {
  /** An IP address. */
  readonly hostname: string;
  readonly port: number;
}

/** What the owner of a socket hears. */
export interface DatagramEvents {
  /** @param octets A view that is valid only during the call. */
  onDatagram(octets: Uint8Array, hostname: string, port: number): void;
  /** The socket can no longer receive. */
  onError(error: Error): void;
}

/** An open socket. */
export interface DatagramSocket {
  /** As bound. */
  readonly address: DatagramAddress;
  /** Sets who hears the events; called once. */
  listen(events: DatagramEvents): void;
  /**
   * Sends one datagram, which is copied. One that cannot be sent is lost, as UDP
   * loses them anywhere else.
   */
  send(octets: Uint8Array, to: DatagramAddress): void;
  /** Nothing is heard any more. @param closed Called when the port is free. */
  close(closed?: () => void): void;
}

/** The longest datagram there is, rounded up (RFC 768). */
const DATAGRAM_OCTETS_MAX = 65_536;

/**
 * Reads that may fail one after the other. Some systems report there that an
 * earlier datagram was refused, and the socket goes on; a dead one fails always.
 */
const READ_FAILURES_MAX = 16;

/** The part of `Deno.DatagramConn` that is used. */
interface PlatformSocket {
  readonly addr: DatagramAddress;
  receive(into: Uint8Array): Promise<[Uint8Array, DatagramAddress]>;
  send(octets: Uint8Array, to: DatagramAddress & Udp): Promise<number>;
  close(): void;
}

type Udp = { readonly transport: "udp" };
type Listen = (options: DatagramAddress & Udp) => PlatformSocket;

/**
 * Binds a socket.
 *
 * @param at Port 0: any free one.
 * @throws A system error, such as one with code `EADDRINUSE`.
 */
export function openDatagramSocket(
  at: DatagramAddress,
): Promise<DatagramSocket> {
  const { listenDatagram } = Deno as unknown as { listenDatagram?: Listen };
  return listenDatagram === undefined
    ? NodeDatagramSocket.open(at)
    : DenoDatagramSocket.open(at, listenDatagram);
}

/** On `Deno.listenDatagram`. */
export class DenoDatagramSocket implements DatagramSocket {
  readonly #socket: PlatformSocket;
  #isClosed = false;

  private constructor(socket: PlatformSocket) {
    this.#socket = socket;
  }

  // deno-lint-ignore require-await -- what it throws is to be a rejection
  static async open(
    { hostname, port }: DatagramAddress,
    listen: Listen,
  ): Promise<DatagramSocket> {
    const at = hostname === "" ? "0.0.0.0" : hostname;
    return new DenoDatagramSocket(
      listen({ transport: "udp", hostname: at, port }),
    );
  }

  get address(): DatagramAddress {
    return this.#socket.addr;
  }

  listen(events: DatagramEvents): void {
    void this.#receive(events);
  }

  send(octets: Uint8Array, { hostname, port }: DatagramAddress): void {
    if (this.#isClosed) return;
    // Copied, because the platform keeps it until the system has taken it.
    const copy = octets.slice();
    this.#socket.send(copy, { transport: "udp", hostname, port }).catch(lost);
  }

  close(closed?: () => void): void {
    if (!this.#isClosed) this.#socket.close();
    this.#isClosed = true;
    if (closed !== undefined) queueMicrotask(closed);
  }

  async #receive({ onDatagram, onError }: DatagramEvents): Promise<void> {
    // Its pages are the system's until a datagram is long enough to need them.
    const buffer = new Uint8Array(DATAGRAM_OCTETS_MAX);
    for (let failures = 0; !this.#isClosed;) {
      let received: [Uint8Array, DatagramAddress];
      try {
        received = await this.#socket.receive(buffer);
      } catch (error) {
        if (this.#isClosed) return;
        if (++failures < READ_FAILURES_MAX) continue;
        return onError(error as Error);
      }
      failures = 0;
      const [octets, { hostname, port }] = received;
      if (!this.#isClosed) onDatagram(octets, hostname, port);
    }
  }
}

/** On `node:dgram`. */
export class NodeDatagramSocket implements DatagramSocket {
  readonly #socket: ReturnType<typeof createSocket>;
  #isClosed = false;

  private constructor(socket: ReturnType<typeof createSocket>) {
    this.#socket = socket;
  }

  static open({ hostname, port }: DatagramAddress): Promise<DatagramSocket> {
    const family = hostname.includes(":") ? "udp6" : "udp4";
    return new Promise((resolve, reject) => {
      const socket = createSocket(family);
      socket.once("error", reject);
      socket.bind(port, hostname, () => {
        socket.off("error", reject);
        resolve(new NodeDatagramSocket(socket));
      });
    });
  }

  get address(): DatagramAddress {
    const { address, port } = this.#socket.address();
    return { hostname: address, port };
  }

  listen({ onDatagram, onError }: DatagramEvents): void {
    this.#socket.on(
      "message",
      (octets, { address, port }) =>
        onDatagram(plainOctets(octets), address, port),
    );
    this.#socket.on("error", onError);
  }

  send(octets: Uint8Array, { hostname, port }: DatagramAddress): void {
    if (this.#isClosed) return;
    // Copied, because the socket keeps it until the system has taken it.
    this.#socket.send(octets.slice(), port, hostname, lost);
  }

  close(closed?: () => void): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close(closed);
  }
}

/** UDP promises nothing, so a datagram that cannot be sent is a lost one. */
function lost(): void {}

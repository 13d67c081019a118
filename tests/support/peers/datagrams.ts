/**
 * UDP programs of a test: one that asks, and one that answers.
 *
 * @module
 */

import {
  type DatagramAddress,
  type DatagramSocket,
  openDatagramSocket,
} from "../../../net/datagram/datagram_socket.ts";

/** What came, and from where. */
export interface Received {
  readonly bytes: Uint8Array;
  readonly from: DatagramAddress;
}

/** See the module description. */
export class DatagramPeer implements AsyncDisposable {
  readonly #socket: DatagramSocket;
  readonly #received: Received[] = [];
  #waiting: (() => void)[] = [];
  /** Says something at once to each datagram. */
  answer: ((received: Received) => Uint8Array | undefined) | undefined;
  /** Datagrams that came, ever. */
  count = 0;

  private constructor(socket: DatagramSocket) {
    this.#socket = socket;
    socket.listen({
      onDatagram: (view, hostname, port) =>
        this.#hear({ bytes: view.slice(), from: { hostname, port } }),
      onError() {},
    });
  }

  /** On a free port of loopback, or on `port`. */
  static async open(
    port = 0,
    hostname = "127.0.0.1",
  ): Promise<DatagramPeer> {
    return new DatagramPeer(await openDatagramSocket({ hostname, port }));
  }

  /** One that sends back what it receives, behind `prefix`. */
  static async echo(prefix = "", hostname?: string): Promise<DatagramPeer> {
    const peer = await DatagramPeer.open(0, hostname);
    const before = new TextEncoder().encode(prefix);
    peer.answer = ({ bytes }) => Uint8Array.from([...before, ...bytes]);
    return peer;
  }

  get port(): number {
    return this.#socket.address.port;
  }

  send(
    bytes: Uint8Array | string,
    port: number,
    hostname = "127.0.0.1",
  ): void {
    const plain = typeof bytes === "string"
      ? new TextEncoder().encode(bytes)
      : bytes;
    this.#socket.send(plain, { hostname, port });
  }

  /** The next datagram that nobody has asked for yet. */
  async next(): Promise<Received> {
    while (this.#received.length === 0) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.#received.shift()!;
  }

  async nextText(): Promise<string> {
    return new TextDecoder().decode((await this.next()).bytes);
  }

  /** Sends, and gives what comes back first. */
  ask(text: string, port: number): Promise<string> {
    this.send(text, port);
    return this.nextText();
  }

  /** Resolves when the port is free. */
  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => this.#socket.close(resolve));
  }

  #hear(received: Received): void {
    this.count++;
    const answer = this.answer?.(received);
    if (answer !== undefined) return this.#socket.send(answer, received.from);
    this.#received.push(received);
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

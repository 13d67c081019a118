/**
 * A UDP socket of `node:dgram`.
 *
 * @module
 */

import { createSocket } from "node:dgram";
import { KERNEL_BUFFER_BYTES } from "./datagram_descriptor.ts";
import type {
  DatagramEvents,
  DatagramSocket,
  DatagramSocketWish,
} from "./datagram_socket.ts";
import { plainBytes } from "../buffers/plain_bytes.ts";
import { codeOf } from "../../platform/errors/error_code.ts";
import { hear } from "./hear_datagram.ts";
import type { DatagramAddress } from "../libc/socket_address.ts";

/** See the module description. */
export class NodeDatagramSocket implements DatagramSocket {
  readonly #socket: ReturnType<typeof createSocket>;
  #isClosed = false;

  private constructor(socket: ReturnType<typeof createSocket>) {
    this.#socket = socket;
  }

  static open(
    { hostname, port }: DatagramAddress,
    { kernelBytes = KERNEL_BUFFER_BYTES }: DatagramSocketWish = {},
  ): Promise<DatagramSocket> {
    const family = hostname.includes(":") ? "udp6" : "udp4";
    return new Promise((resolve, reject) => {
      const socket = createSocket({
        type: family,
        recvBufferSize: kernelBytes,
        sendBufferSize: kernelBytes,
      });
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

  listen(events: DatagramEvents): void {
    this.#socket.on(
      "message",
      (bytes, { address, port }) =>
        hear(events, plainBytes(bytes), address, port),
    );
    this.#socket.on("error", (error) => {
      // One of those who were answered has refused it: the others may go on.
      if (codeOf(error) !== "ECONNREFUSED") events.onError(error);
    });
  }

  send(bytes: Uint8Array, { hostname, port }: DatagramAddress): void {
    if (this.#isClosed) return;
    // Copied, because the socket keeps it until the system has taken it.
    this.#socket.send(bytes.slice(), port, hostname, lost);
  }

  close(closed?: () => void): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.close(closed);
  }
}

/** UDP promises nothing, so a datagram that cannot be sent is a lost one. */
function lost(): void {}

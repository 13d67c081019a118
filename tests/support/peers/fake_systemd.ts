/**
 * What systemd is to a service, for tests: sockets that it has opened, and a
 * place where it is told how things are and is given descriptors.
 *
 * @module
 */

import { receiveDescriptors } from "../../../net/libc/descriptor_messages.ts";
import { type LibC, openLibc } from "../../../net/libc/libc.ts";
import { encodeSocketAddress } from "../../../net/libc/socket_address.ts";
import { encodeUnixAddress } from "../../../net/libc/unix_address.ts";

const AF_INET = 2;
const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const BACKLOG = 256;
const POLL_MS = 10;

/** See the module description. */
export class FakeSystemd implements Disposable {
  readonly #library: LibC = openLibc()!;
  readonly #notices: number;
  /** Each with its lines; what came with it is in `kept`. */
  readonly received: string[] = [];
  /** Descriptors that it was given, open here. */
  readonly kept: number[] = [];
  readonly #opened: number[] = [];

  /** @param notifyPath Its `NOTIFY_SOCKET`. */
  constructor(readonly notifyPath: string) {
    this.#notices = this.#library.socket(AF_UNIX, SOCK_DGRAM, 0);
    const name = encodeUnixAddress(notifyPath)!;
    this.#library.bind(this.#notices, name, name.length);
  }

  /** Opens a socket that programs inherit. @returns Its descriptor. */
  listen(port: number): number {
    const library = this.#library;
    const descriptor = library.socket(AF_INET, SOCK_STREAM, 0);
    const name = encodeSocketAddress({ hostname: "127.0.0.1", port })!;
    library.setsockopt(
      ...[descriptor, 1, 2] as const,
      new Uint8Array(new Uint32Array([1]).buffer),
      4,
    );
    if (library.bind(descriptor, name, name.length) !== 0) {
      throw new Error(`cannot bind ${port}`);
    }
    library.listen(descriptor, BACKLOG);
    this.#opened.push(descriptor);
    return descriptor;
  }

  /**
   * A command that gets `descriptors` as systemd passes them on; they were opened
   * by `listen`, or kept.
   */
  passing(
    descriptors: readonly number[],
    command: readonly string[],
  ): readonly string[] {
    // Those that were received are closed in programs unless that is undone.
    for (const descriptor of descriptors) {
      this.#library.fcntl(descriptor, 2, 0);
    }
    const moves = descriptors
      .map((descriptor, index) => `${3 + index}<&${descriptor}`).join(" ");
    const variables = `LISTEN_PID=$$ LISTEN_FDS=${descriptors.length} ` +
      `NOTIFY_SOCKET=${this.notifyPath}`;
    const script = `exec ${moves}; export ${variables}; exec "$@"`;
    return ["bash", "-c", script, "bash", ...command];
  }

  /** Resolves when it has heard this. */
  async until(pattern: RegExp): Promise<void> {
    while (!this.received.some((text) => pattern.test(text))) {
      const message = receiveDescriptors(this.#library, this.#notices);
      if (!message) {
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        continue;
      }
      this.received.push(message.text);
      this.kept.push(...message.descriptors);
    }
  }

  /** Forgets what it has heard. */
  clear(): void {
    this.received.length = 0;
  }

  /** Keeps nothing, as where a unit has FileDescriptorStoreMax=0. */
  discard(): void {
    for (const one of this.kept.splice(0)) this.#library.close(one);
  }

  [Symbol.dispose](): void {
    for (const one of [this.#notices, ...this.kept, ...this.#opened]) {
      this.#library.close(one);
    }
  }
}

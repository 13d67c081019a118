/**
 * A caller of a gRPC frontend that does what no library would: it chooses what
 * goes into one write, and hangs up in the middle of things.
 *
 * @module
 */

import { joinedBytes } from "../../../proto/bytes/byte_arrays.ts";
import { systemTimers } from "../../../platform/time/system_timers.ts";
import { encodeFrame } from "./encoded_frame.ts";
import type { Packet } from "../../../proto/packets/packet.ts";
import { Connection } from "../../../proto/streams/connection.ts";
import { refusePush } from "../../../proto/streams/stream.ts";
import { ScriptedCaller } from "../watch/packet_script.ts";
import { writeAll } from "./sockets.ts";
import { eventually } from "../rigs/tunnel_harness.ts";
import { PROXY_PATH } from "../../../proto/link/capabilities.ts";

/** One connection with one call. See the module description. */
export class RawCaller {
  readonly script: ScriptedCaller;
  readonly #conn: Deno.Conn;
  readonly #connection: Connection;
  #isHolding = false;
  /** How much had been heard after each read that brought any packet. */
  readonly readsHeard: number[] = [];
  /** The server has closed the connection, or we have. */
  readonly closed: Promise<void>;

  /** Calls `/ProxyService/Proxy`, as kube-apiserver does for each dial. */
  static async open(path: string, method = PROXY_PATH): Promise<RawCaller> {
    return new RawCaller(
      await Deno.connect({ transport: "unix", path }),
      method,
    );
  }

  private constructor(conn: Deno.Conn, method: string) {
    this.#conn = conn;
    this.#connection = new Connection({
      role: "client",
      clock: systemTimers,
      events: {
        onStream: refusePush,
        onClosed: () => {},
      },
    });
    this.#connection.setOutputListener(() => queueMicrotask(() => this.#say()));
    this.#connection.start();
    this.script = new ScriptedCaller(this.#connection, method);
    this.closed = this.#read();
  }

  /** Dials as a Go client does. @returns The connectID. */
  async dial(address: string): Promise<Packet & { type: "DIAL_RSP" }> {
    this.script.say({ type: "DIAL_REQ", protocol: "tcp", address, random: 7n });
    await this.receives(/^DIAL_RSP/);
    const [answer] = this.script.packets;
    if (answer?.type !== "DIAL_RSP") throw new Error("Expected a DIAL_RSP");
    return answer;
  }

  /** Waits until a line of `script.heard` matches. */
  async receives(pattern: RegExp): Promise<void> {
    await eventually(
      `${pattern} in ${this.script.received}`,
      () => this.script.received.some((line) => pattern.test(line)),
    );
  }

  /** From here on nothing leaves before `hangUp`. */
  hold(): void {
    this.#isHolding = true;
  }

  /**
   * Says everything that was held and GOAWAY in one write, and closes the
   * socket at once: kube-apiserver's way of ending.
   */
  async hangUp(): Promise<void> {
    const batches: Uint8Array[] = [];
    for (let batch; (batch = this.#connection.takeOutput()) !== undefined;) {
      batches.push(batch.slice());
      this.#connection.outputWritten();
    }
    batches.push(encodeFrame({
      type: "GOAWAY",
      lastStreamId: 0,
      errorCode: 0,
      debugData: new TextEncoder().encode("client transport shutdown"),
    }));
    await writeAll(this.#conn, joinedBytes(batches));
    this.close();
  }

  /** Closes the socket without a word. */
  close(): void {
    this.#isHolding = true;
    this.#conn.close();
  }

  async #say(): Promise<void> {
    if (this.#isHolding) return;
    const batch = this.#connection.takeOutput();
    if (batch === undefined) return;
    await writeAll(this.#conn, batch);
    this.#connection.outputWritten();
    await this.#say();
  }

  async #read(): Promise<void> {
    const buffer = new Uint8Array(64 * 1024);
    try {
      for (;;) {
        const count = await this.#conn.read(buffer);
        if (count === null) return;
        const before = this.script.received.length;
        this.#connection.receive(buffer.subarray(0, count));
        const { length } = this.script.received;
        if (length > before) this.readsHeard.push(length);
      }
    } catch {
      // The socket was closed, by the test.
    }
  }
}

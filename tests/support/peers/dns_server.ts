/**
 * A name server on loopback, by UDP and TCP, that answers as a test says: well,
 * badly, or not at all.
 *
 * @module
 */

import { Buffer } from "node:buffer";
// @ts-types="../../../services/proxy/dns/dns_packet.d.ts"
import packet from "dns-packet";
import type { DatagramAddress } from "../../../net/libc/socket_address.ts";
import { arrivals } from "./sockets.ts";

/** A question that came. */
export interface AskedQuestion {
  readonly id: number;
  readonly name: string;
  readonly type: string;
  readonly transport: "udp" | "tcp";
  readonly hasEdns: boolean;
  /** The port that it came from. */
  readonly port: number;
}

/** What is answered: messages, of which a TCP asker gets the first. */
export type Answerer = (asked: AskedQuestion) => readonly Uint8Array[];

/** See the module description. */
export class DnsServer implements AsyncDisposable {
  readonly #udp: Deno.DatagramConn;
  readonly #tcp: Deno.Listener;
  readonly #answer: Answerer;
  readonly #running: Promise<unknown>;
  readonly #conns = new Set<Deno.Conn>();
  /** All that was asked, in order. */
  readonly asked: AskedQuestion[] = [];

  private constructor(
    udp: Deno.DatagramConn,
    tcp: Deno.Listener,
    answer: Answerer,
  ) {
    this.#udp = udp;
    this.#tcp = tcp;
    this.#answer = answer;
    this.#running = Promise.all([this.#serveUdp(), this.#serveTcp()]);
  }

  /** @param at Default: a free port. */
  static open(
    answer: Answerer,
    at: DatagramAddress = { hostname: "127.0.0.1", port: 0 },
  ): DnsServer {
    const { hostname } = at;
    for (;;) {
      const tcp = Deno.listen(at);
      const { port } = tcp.addr as Deno.NetAddr;
      try {
        const udp = Deno.listenDatagram({
          transport: "udp",
          hostname,
          port,
        });
        return new DnsServer(udp, tcp, answer);
      } catch (error) {
        tcp.close();
        const isTaken = error instanceof Deno.errors.AddrInUse;
        if (!isTaken || at.port !== 0) throw error;
      }
    }
  }

  get address(): DatagramAddress {
    const { hostname, port } = this.#udp.addr as Deno.NetAddr;
    return { hostname, port };
  }

  /** When so many questions have come. */
  async untilAsked(count: number): Promise<void> {
    while (this.asked.length < count) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#udp.close();
    this.#tcp.close();
    for (const conn of this.#conns) conn.close();
    await this.#running;
  }

  async #serveUdp(): Promise<void> {
    for await (const [bytes, from] of this.#udp) {
      const { port } = from as Deno.NetAddr;
      for (const message of this.#reply(bytes, "udp", port)) {
        await this.#udp.send(message, from).catch(() => {});
      }
    }
  }

  async #serveTcp(): Promise<void> {
    for await (const conn of arrivals(this.#tcp)) void this.#serveConn(conn);
  }

  async #serveConn(conn: Deno.Conn): Promise<void> {
    this.#conns.add(conn);
    try {
      const bytes = new Uint8Array(2_048);
      let length = 0;
      while (length < 2 || length < 2 + ((bytes[0]! << 8) | bytes[1]!)) {
        const count = await conn.read(bytes.subarray(length));
        if (count === null) return;
        length += count;
      }
      const { port } = conn.remoteAddr as Deno.NetAddr;
      const [first] = this.#reply(bytes.slice(2, length), "tcp", port);
      if (first === undefined) return;
      await conn.write(Uint8Array.of(first.length >> 8, first.length & 0xff));
      const writer = conn.writable.getWriter();
      await writer.write(Uint8Array.from(first));
    } catch {
      // Whoever asked has gone; tests see what they got.
    } finally {
      this.#conns.delete(conn);
      try {
        conn.close();
      } catch {
        // Closed with the server.
      }
    }
  }

  #reply(
    bytes: Uint8Array,
    transport: "udp" | "tcp",
    port: number,
  ): readonly Uint8Array[] {
    const { id, questions, additionals } = packet.decode(Buffer.from(bytes));
    const { name, type } = questions[0]!;
    const hasEdns = additionals.some((one) => one.type === "OPT");
    const asked = { id, name, type, transport, port, hasEdns };
    this.asked.push(asked);
    return this.#answer(asked);
  }
}

/** What a well-behaved answer says; `code` is its rcode. */
export function dnsAnswer(
  asked: Pick<AskedQuestion, "id" | "name" | "type">,
  answers: readonly packet.Answer[],
  { code = 0, truncated = false, authorities }: {
    readonly code?: number;
    readonly truncated?: boolean;
    readonly authorities?: readonly packet.Answer[];
  } = {},
): Uint8Array {
  return packet.encode({
    type: "response",
    id: asked.id,
    flags: 0x0180 | code | (truncated ? 0x0200 : 0),
    questions: [{ name: asked.name, type: asked.type }],
    answers,
    ...(authorities === undefined ? {} : { authorities }),
  });
}

/** Answers A (and AAAA) from a table; what is not in it does not exist. */
export function fromTable(
  table: Readonly<Record<string, readonly string[]>>,
  ttl = 60,
): Answerer {
  return (asked) => {
    const addresses = Object.hasOwn(table, asked.name)
      ? table[asked.name]
      : undefined;
    if (addresses === undefined) {
      return [dnsAnswer(asked, [], { code: 3, authorities: [soa(2)] })];
    }
    const type = asked.type === "AAAA" ? "AAAA" : "A";
    const answers = addresses
      .filter((address) => address.includes(":") === (type === "AAAA"))
      .map((data) => ({ type, name: asked.name, ttl, data }) as const);
    return [dnsAnswer(asked, answers, { authorities: [soa(2)] })];
  };
}

/** Says that nothing will be there for so many seconds. */
export function soa(minimum: number): packet.Answer {
  return {
    type: "SOA",
    name: "test",
    ttl: 3_600,
    data: {
      mname: "ns.test",
      rname: "root.test",
      serial: 1,
      refresh: 1,
      retry: 1,
      expire: 1,
      minimum,
    },
  };
}

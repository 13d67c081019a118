/**
 * One connection to a cluster of several members, and another when that one
 * will not do.
 *
 * All calls share the connection. A member is left when it does not answer or
 * says that it cannot; calls that go on there are not disturbed.
 *
 * @module
 */

import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import { Connection } from "../../proto/streams/connection.ts";
import { refusePush } from "../../proto/streams/refuse_push.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { driveHttp2 } from "../../net/http2/http2_driver.ts";
import type { Transport } from "../../net/stream/transport.ts";
import { type MemberAddress, memberName } from "./member_address.ts";
import type { ConnectMember } from "./member_connect.ts";

/**
 * Silence after which a member is asked, and for how long. etcd hangs up on
 * who asks more often than every 5 s.
 */
const KEEPALIVE = { intervalMs: 10_000, timeoutMs: 5_000 };

/** See the module description. */
export interface MembersOptions {
  /** At least one. */
  readonly members: readonly MemberAddress[];
  readonly connect: ConnectMember;
  readonly timers: Timers;
  /** Uniform in [0, 1): which is tried first, so that many spread. */
  readonly random: () => number;
}

/** A connection, and whose it is. */
export interface MemberConnection {
  readonly member: MemberAddress;
  readonly http2: Connection;
  /** Whether anything was ever said there. */
  readonly hasAnswered: boolean;
}

/** See the module description. */
export class Members {
  readonly #options: MembersOptions;
  readonly #closing = new AbortController();
  /** All that are open, the current one and those that were left. */
  readonly #open = new Set<Connection>();
  #next: number;
  #current: MemberConnection | undefined;
  #connecting: Promise<MemberConnection> | undefined;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#next = Math.floor(options.random() * options.members.length);
  }

  get count(): number {
    return this.#options.members.length;
  }

  /**
   * The connection in use, or a new one to the first member that answers.
   *
   * @throws {GrpcError} UNAVAILABLE when no member answers.
   */
  connection(): Promise<MemberConnection> {
    if (this.#current?.http2.isUsable) return Promise.resolve(this.#current);
    this.#connecting ??= this.#connectAny().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** That one does not do: the next call goes to another member. */
  leave(connection: MemberConnection): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    this.#next++;
    connection.http2.shutdown("another member is asked");
  }

  /** Ends all calls and connections. */
  close(): void {
    this.#closing.abort();
    this.#current = undefined;
    for (const http2 of this.#open) http2.abort(0, "the client is closed");
  }

  async #connectAny(): Promise<MemberConnection> {
    const { members } = this.#options;
    const failures: string[] = [];
    for (let tried = 0; tried < members.length; tried++) {
      const member = members[this.#next % members.length]!;
      try {
        return this.#current = await this.#connect(member);
      } catch (error) {
        if (!(error instanceof GrpcError)) throw error;
        failures.push(error.message);
        if (this.#closing.signal.aborted) break;
        this.#next++;
      }
    }
    throw new GrpcError(StatusCode.UNAVAILABLE, failures.join("; "));
  }

  #connect(member: MemberAddress): Promise<MemberConnection> {
    const { signal } = this.#closing;
    return this.#options.connect(member, signal, (transport) => {
      let hasAnswered = false;
      const onAnswer = () => hasAnswered = true;
      const http2 = this.#drive(transport, member, onAnswer);
      if (signal.aborted) http2.abort(0, "the client is closed");
      return {
        member,
        http2,
        get hasAnswered() {
          return hasAnswered;
        },
      };
    });
  }

  #drive(
    transport: Transport,
    member: MemberAddress,
    onAnswer: () => void,
  ): Connection {
    const { timers } = this.#options;
    const http2 = new Connection({
      role: "client",
      clock: timers,
      keepalive: KEEPALIVE,
      events: {
        onStream: refusePush,
        onPeerSettings: onAnswer,
        onClosed: () => {
          this.#open.delete(http2);
          if (this.#current?.http2 === http2) this.#current = undefined;
        },
      },
    });
    this.#open.add(http2);
    if (member.isTls && transport.alpn !== "h2") {
      http2.start();
      driveHttp2(transport, http2, timers);
      http2.abort(0, "no HTTP/2");
      throw new GrpcError(
        StatusCode.UNAVAILABLE,
        `Cannot speak to ${memberName(member)}: it chose no HTTP/2 by ALPN; ` +
          "give the address for clients of an etcd member",
      );
    }
    http2.start();
    driveHttp2(transport, http2, timers);
    return http2;
  }
}

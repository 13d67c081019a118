/**
 * A link of the packets carrier, as the agent holds it: one call of
 * `/AgentService/Connect` to Konnectivity's server or to ours.
 *
 * Layer: link. The mirror of `packets_server.ts`; the dialer is handed in.
 *
 * @module
 */

import type { ClientCall, ClientCallEvents } from "../grpc/call.ts";
import { startCall, type StreamOpener } from "../grpc/client.ts";
import { Metadata } from "../grpc/metadata.ts";
import { type Status, StatusCode, statusName } from "../grpc/status.ts";
import {
  type Data,
  type DialRequest,
  type Int64,
  type Packet,
  PacketError,
} from "../packets/packet.ts";
import type { Timer, Timers } from "../sync/clock.ts";
import { INTERNAL_ERROR, reportFault } from "../sync/faults.ts";
import type { Conduit } from "../transfer/conduit.ts";
import { transfer } from "../transfer/transfer.ts";
import {
  announceCapabilities,
  CONNECT_PATH,
  hasCapability,
  parseServers,
  SERVERS_FIELD,
} from "./capabilities.ts";
import { abandon, connectionIdOf, type DialHandler } from "./dial_handler.ts";
import { LinkError, LinkRefusedError } from "./hello.ts";
import { INSTANCE_FIELD } from "../peer/peer_identity.ts";
import {
  type PacketObserver,
  type PendingDial,
  SILENT_OBSERVER,
} from "./link.ts";
import { PacketsMux } from "./packets_mux.ts";
import type { PeerServer } from "./link_messages.ts";

/** How long the server may take to answer with its id. */
export const HEAD_WAIT_MS = 10_000;

/** Dials under way on one link; a server that sends more is refused. */
export const DIALS_MAX = 10_000;

/** See {@linkcode PacketsAgentLink}. */
interface PacketsAgentOptions {
  readonly agentId: string;
  /** A URL query; see `identifiers.ts`. */
  readonly identifiers: string;
  readonly token?: string;
  /** See `peer_identity.ts`. */
  readonly instanceId?: string | undefined;
  readonly authority: string;
  readonly scheme?: "http" | "https";
  readonly onDial: DialHandler;
  /** Carries the bytes between the two until both are closed; `transfer`. */
  readonly join?: (caller: Conduit, target: Conduit) => unknown;
  readonly timers: Timers;
  readonly observer?: PacketObserver;
  /**
   * The link stands.
   *
   * @param isOurs The server would speak the streams carrier, too: something
   *   on the way has changed ALPN.
   */
  readonly onServerInfo: (
    serverId: string,
    serverCount: number,
    isOurs: boolean,
    servers: readonly PeerServer[],
  ) => void;
  /** It is over or never came to be; a refusal is there word for word. */
  readonly onClosed: (error: LinkError) => void;
  /** Largest message accepted; see `PACKET_MESSAGE_BYTES_MAX`. */
  readonly messageBytesMax?: number;
}

/** A dial under way; `pending` is unset while it is being started. */
interface Dial {
  pending: PendingDial | undefined;
}

export class PacketsAgentLink implements ClientCallEvents {
  /** Holds the token, so no debugger's print of this object may show it. */
  readonly #options: PacketsAgentOptions;
  readonly #call: ClientCall;
  readonly #mux: PacketsMux;
  readonly #dials = new Map<Int64, Dial>();
  readonly #headWait: Timer;
  #state: "opening" | "open" | "over" = "opening";
  #connectIds = 0;
  #hasDrained = false;

  /**
   * Starts a link. `onServerInfo` follows, or `onClosed` alone.
   *
   * @throws {GrpcError} UNAVAILABLE when the connection takes no more calls.
   */
  constructor(connection: StreamOpener, options: PacketsAgentOptions) {
    this.#options = options;
    const { scheme, authority } = options;
    this.#call = startCall(connection, {
      path: CONNECT_PATH,
      authority,
      scheme,
      metadata: requestMetadata(options),
    }, this);
    this.#mux = new PacketsMux({
      body: this.#call,
      role: "agent",
      timers: options.timers,
      observer: options.observer ?? SILENT_OBSERVER,
      onPacket: (packet) => this.#onPacket(packet),
      onOverrun: (reason) => this.close(reason),
      messageBytesMax: options.messageBytesMax,
    });
    this.#headWait = options.timers.after(
      HEAD_WAIT_MS,
      () => this.close(`the server did not answer in ${HEAD_WAIT_MS / 1000} s`),
    );
  }

  /** Conduits and dials under way. */
  get load(): number {
    return this.#dials.size + this.#mux.conduits;
  }

  /** Asks the server for no further dials that it can avoid; sent once. */
  drain(): void {
    if (this.#hasDrained || this.#state !== "open") return;
    this.#hasDrained = true;
    this.#mux.say({ type: "DRAIN" });
  }

  /** Ends the link; its conduits are lost with `reason`. */
  close(reason: string): void {
    if (this.#state === "over") return;
    this.#call.cancel();
    this.#over(reason);
  }

  onMetadata(metadata: Metadata): void {
    if (this.#state !== "opening") return;
    const ids = metadata.texts("serverid");
    const counts = metadata.texts("servercount");
    if (ids.length !== 1) {
      return this.close(
        `expected one server ID in the context, got [${ids.join(" ")}]`,
      );
    }
    if (counts.length !== 1 || !/^[0-9]{1,9}$/.test(counts[0]!)) {
      return this.close(
        `expected one server count in the context, got [${counts.join(" ")}]`,
      );
    }
    this.#headWait.cancel();
    this.#state = "open";
    const isOurs = hasCapability(metadata, "half-close");
    if (isOurs) this.#mux.recognisePeer();
    const servers = parseServers(metadata.text(SERVERS_FIELD));
    this.#options.onServerInfo(ids[0]!, Number(counts[0]), isOurs, servers);
  }

  onBody(chunk: Uint8Array): void {
    try {
      this.#mux.push(chunk);
    } catch (error) {
      if (!(error instanceof PacketError)) throw error;
      this.close(error.message);
    }
  }

  onWritable(): void {
    this.#mux.writable();
  }

  onStatus(status: Status): void {
    if (status.code !== StatusCode.OK) {
      this.#options.observer?.streamFailed?.(status.code);
    }
    const reason = status.message ||
      (status.code === StatusCode.OK
        ? "the server ended the link"
        : statusName(status.code));
    const isRefusal = status.code === StatusCode.PERMISSION_DENIED ||
      status.code === StatusCode.UNAUTHENTICATED;
    this.#over(
      reason,
      isRefusal
        ? new LinkRefusedError(reason, status.tunnelCode)
        : new LinkError(reason),
    );
  }

  #onPacket(packet: Exclude<Packet, Data>): void {
    if (this.#state !== "open") return;
    if (packet.type === "DIAL_REQ") return this.#dial(packet);
    if (packet.type !== "DIAL_CLS") return; // the others are ignored
    const dial = this.#dials.get(packet.random);
    this.#dials.delete(packet.random);
    cancel(dial?.pending);
  }

  #dial({ protocol, address, random }: DialRequest): void {
    const problem = this.#dials.has(random)
      ? "a dial with this id is under way"
      : this.#dials.size >= DIALS_MAX
      ? `${DIALS_MAX} dials are under way`
      : undefined;
    if (problem !== undefined) return this.#refuse(random, problem);
    const dial: Dial = { pending: undefined };
    this.#dials.set(random, dial);
    try {
      dial.pending = this.#options.onDial({ protocol, address }, {
        connected: (conduit) =>
          this.#connected(random, dial, protocol === "udp", conduit),
        failed: (error) => {
          if (this.#take(random, dial)) this.#refuse(random, error.message);
        },
      }, {
        metadata: new Metadata(),
        id: connectionIdOf(random),
        takeEarlyData: () => new Uint8Array(0),
      });
    } catch (error) {
      reportFault("link", error);
      if (this.#take(random, dial)) this.#refuse(random, INTERNAL_ERROR);
    }
  }

  #connected(
    random: Int64,
    dial: Dial,
    datagrams: boolean,
    target: Conduit,
  ): void {
    if (!this.#take(random, dial)) {
      return abandon(target, "the caller gave this connection up");
    }
    const connectId = ++this.#connectIds;
    const conduit = this.#mux.add(connectId, datagrams)!;
    this.#mux.say({ type: "DIAL_RSP", error: "", connectId, random });
    (this.#options.join ?? transfer)(conduit, target);
  }

  /** Whether `dial` was still wanted: ids may be used again after DIAL_CLS. */
  #take(random: Int64, dial: Dial): boolean {
    if (this.#dials.get(random) !== dial) return false;
    return this.#dials.delete(random);
  }

  #refuse(random: Int64, error: string): void {
    this.#mux.say({ type: "DIAL_RSP", error, connectId: 0, random });
  }

  #over(reason: string, error: LinkError = new LinkError(reason)): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#headWait.cancel();
    const dials = [...this.#dials.values()];
    this.#dials.clear();
    for (const { pending } of dials) cancel(pending);
    this.#mux.lose(reason);
    this.#options.onClosed(error);
  }
}

function cancel(pending: PendingDial | undefined): void {
  try {
    pending?.cancel();
  } catch (error) {
    reportFault("link", error);
  }
}

function requestMetadata(options: PacketsAgentOptions): Metadata {
  const metadata = new Metadata({ agentid: options.agentId });
  if (options.identifiers !== "") {
    metadata.add("agentidentifiers", options.identifiers);
  }
  if (options.token !== undefined && options.token !== "") {
    metadata.add("authorization", `Bearer ${options.token}`);
  }
  if (options.instanceId !== undefined) {
    metadata.add(INSTANCE_FIELD, options.instanceId);
  }
  return announceCapabilities(metadata);
}

/**
 * Peers that say exactly what a test tells them, packet by packet, and write
 * down what they hear: a Go program at either end of a call.
 *
 * @module
 */

import type {
  CallBody,
  ClientCall,
  ServerCall,
  ServerCallEvents,
} from "../../../proto/grpc/call.ts";
import { startCall, type StreamOpener } from "../../../proto/grpc/client.ts";
import { Metadata } from "../../../proto/grpc/metadata.ts";
import { type StatusCode, statusName } from "../../../proto/grpc/status.ts";
import { encodePacket } from "../../../proto/packets/packet_codec.ts";
import type { Data, Int64, Packet } from "../../../proto/packets/packet.ts";
import {
  PacketReader,
  type PacketReaderEvents,
} from "../../../proto/packets/packet_reader.ts";
import { REST } from "../memory/conduit_probe.ts";

/** What a scripted peer heard, in one line per packet. */
class Script implements PacketReaderEvents {
  /** Such as `DATA 1 "hello"`, `DIAL_RSP 1 ok`, `status OK`. */
  readonly received: string[] = [];
  /** The packets themselves, DATA excepted. */
  readonly packets: Exclude<Packet, Data>[] = [];
  /** Payload of all DATA. */
  bytes = 0;
  /** False makes it a peer that reads and never returns credit. */
  isReading = true;
  protected body!: CallBody;
  readonly #reader = new PacketReader(this);
  #text = "";

  say(...packets: Packet[]): PromiseLike<void> {
    for (const packet of packets) this.body.sendMessage(encodePacket(packet));
    return REST;
  }

  data(connectId: Int64, text: string | Uint8Array): PromiseLike<void> {
    const data = typeof text === "string"
      ? new TextEncoder().encode(text)
      : text;
    return this.say({ type: "DATA", connectId, data });
  }

  onBody(chunk: Uint8Array): void {
    this.#reader.push(chunk);
    if (this.isReading) this.body.consumed(chunk.length);
  }

  onWritable(): void {}

  onData(connectId: Int64, piece: Uint8Array, leftBytes: number): void {
    this.bytes += piece.length;
    if (this.bytes < 4096) this.#text += new TextDecoder().decode(piece);
    if (leftBytes > 0) return;
    this.received.push(`DATA ${connectId} ${JSON.stringify(this.#text)}`);
    this.#text = "";
  }

  onPacket(packet: Exclude<Packet, Data>): void {
    this.packets.push(packet);
    this.received.push(describe(packet));
  }

  onOverhead(): void {}
}

/** The calling end; announces nothing, as Go's. */
export class ScriptedCaller extends Script {
  readonly call: ClientCall;
  metadata = new Metadata();

  constructor(
    connection: StreamOpener,
    path: string,
    metadata: Record<string, string> | Metadata = {},
  ) {
    super();
    this.call = startCall(connection, {
      path,
      authority: "server",
      metadata: metadata instanceof Metadata
        ? metadata
        : new Metadata(metadata),
    }, {
      onMetadata: (metadata) => void (this.metadata = metadata),
      onBody: (chunk) => this.onBody(chunk),
      onWritable() {},
      onStatus: ({ code, message }) => {
        this.received.push(`status ${statusName(code)} ${message}`.trim());
      },
    });
    this.body = this.call;
  }
}

/** The called end; give its `serve` to a router. */
export class ScriptedCallee extends Script implements ServerCallEvents {
  #call!: ServerCall;

  readonly serve = (call: ServerCall): ServerCallEvents => {
    this.#call = call;
    this.body = call;
    return this;
  };

  get metadata(): Metadata {
    return this.#call.metadata;
  }

  answer(metadata: Record<string, string>): PromiseLike<void> {
    this.#call.sendMetadata(new Metadata(metadata));
    return REST;
  }

  finish(code: StatusCode, message: string): PromiseLike<void> {
    this.#call.finish({ code, message });
    return REST;
  }

  onHalfClose(): void {
    this.received.push("half-close");
  }

  onCancel(): void {
    this.received.push("cancel");
  }
}

function describe(packet: Exclude<Packet, Data>): string {
  switch (packet.type) {
    case "DIAL_RSP":
      return `DIAL_RSP ${packet.connectId} ${packet.error || "ok"}`;
    case "CLOSE_RSP":
      return `CLOSE_RSP ${packet.connectId} ${packet.error}`.trim();
    case "CLOSE_REQ":
      return `CLOSE_REQ ${packet.connectId}`;
    case "DIAL_REQ":
      return `DIAL_REQ ${packet.protocol} ${packet.address}`;
    case "DATA_END":
      return `DATA_END ${packet.connectId}`;
    case "DIAL_CLS":
    case "DRAIN":
    case "UNKNOWN":
      return packet.type;
  }
}

/**
 * The other end of a connection, played frame by frame by a test.
 *
 * It speaks any frame, legal or not, and receives everything that the engine under
 * test says. Reads as a dialogue: `peer.send(...)`, then `peer.wants(...)`.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import type { Frame, Setting } from "../../../proto/frames/frame.ts";
import { FrameDecoder } from "../../../proto/frames/frame_decoder.ts";
import { encodeFrame } from "./encoded_frame.ts";
import { HpackDecoder } from "../../../proto/hpack/decoder.ts";
import { HpackEncoder } from "../../../proto/hpack/encoder.ts";
import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import type { Connection } from "../../../proto/streams/connection.ts";
import { CLIENT_PREFACE } from "../../../proto/streams/frame_writer.ts";

/** See the module description. */
export class ScriptedHttp2Peer {
  /** What the engine has said and no `wants` has taken, as text. */
  readonly received: string[] = [];
  readonly #engine: Connection;
  readonly #decoder = new FrameDecoder(0xff_ffff);
  readonly #hpackDecoder = new HpackDecoder();
  readonly #hpackEncoder = new HpackEncoder();
  #prefaceLeft: number;

  /** @param role The role of the peer, opposite to the engine's. */
  constructor(engine: Connection, role: "client" | "server") {
    this.#engine = engine;
    // A server receives the preface of the engine first.
    this.#prefaceLeft = role === "server" ? CLIENT_PREFACE.length : 0;
    if (role === "client") engine.receive(CLIENT_PREFACE);
  }

  /** SETTINGS both ways and their acknowledgements; forgets what was heard. */
  doHandshake(settings: readonly Setting[] = []): void {
    this.send({ type: "SETTINGS", ack: false, settings });
    this.acknowledge();
    this.forget();
  }

  /** Forgets what the engine has said. */
  forget(): void {
    this.listen();
    this.received.length = 0;
  }

  settings(...settings: readonly Setting[]): void {
    this.send({ type: "SETTINGS", ack: false, settings });
  }

  /** Acknowledges SETTINGS. */
  acknowledge(): void {
    this.send({ type: "SETTINGS", ack: true, settings: [] });
  }

  ping(...opaque: readonly number[]): void {
    this.#ping(false, opaque);
  }

  /** Answers a PING. */
  pong(...opaque: readonly number[]): void {
    this.#ping(true, opaque);
  }

  #ping(ack: boolean, bytes: readonly number[]): void {
    const opaque = new Uint8Array(8);
    opaque.set(bytes);
    this.send({ type: "PING", ack, opaque });
  }

  /** Sends frames in one chunk. */
  send(...frames: readonly Frame[]): void {
    const bytes = frames.flatMap((frame) => [...encodeFrame(frame)]);
    this.sendBytes(Uint8Array.from(bytes));
  }

  /** Sends anything. The chunk is wiped when the engine has had it. */
  sendBytes(bytes: Uint8Array): void {
    const chunk = bytes.slice();
    this.#engine.receive(chunk);
    chunk.fill(0xee);
  }

  /** Sends a header section in one HEADERS frame. */
  headers(
    streamId: number,
    fields: readonly HeaderField[],
    endStream = false,
  ): void {
    this.send(this.headersFrame(streamId, fields, endStream));
  }

  /** Frames of one peer must be sent in the order in which they were made. */
  headersFrame(
    streamId: number,
    fields: readonly HeaderField[],
    endStream = false,
  ): Frame {
    const fragment = this.#hpackEncoder.encode(fields).slice();
    return { type: "HEADERS", streamId, endStream, endHeaders: true, fragment };
  }

  data(streamId: number, bytes: number, endStream = false): void {
    this.send({
      type: "DATA",
      streamId,
      endStream,
      data: new Uint8Array(bytes),
      isFirst: true,
      flowBytes: bytes,
      paddingBytes: 0,
    });
  }

  reset(streamId: number, errorCode = 8): void {
    this.send({ type: "RST_STREAM", streamId, errorCode });
  }

  windowUpdate(streamId: number, increment: number): void {
    this.send({ type: "WINDOW_UPDATE", streamId, increment });
  }

  goaway(lastStreamId: number, errorCode = 0, said = ""): void {
    const debugData = new TextEncoder().encode(said);
    this.send({ type: "GOAWAY", lastStreamId, errorCode, debugData });
  }

  /** Takes what the engine has put out. */
  listen(): void {
    for (let batch; (batch = this.#engine.takeOutput()) !== undefined;) {
      const skipped = Math.min(this.#prefaceLeft, batch.length);
      this.#prefaceLeft -= skipped;
      this.#decoder.push(batch.slice(skipped));
      for (let frame; (frame = this.#decoder.next()) !== undefined;) {
        this.received.push(this.#describe(frame));
      }
      this.#engine.outputWritten();
    }
  }

  /** The engine said exactly this since the last time. */
  wants(...expected: readonly string[]): void {
    this.listen();
    assertEquals(this.received.splice(0), expected);
  }

  #describe(frame: Frame): string {
    switch (frame.type) {
      case "DATA":
        return `DATA ${frame.streamId} ${frame.data.length}${end(frame)}`;
      case "HEADERS": {
        const block = this.#hpackDecoder.decode(frame.fragment);
        const { value } = (!block.tooLarge && block.fields[0]) || { value: "" };
        return `HEADERS ${frame.streamId} ${value}${end(frame)}`;
      }
      case "RST_STREAM":
        return `RST_STREAM ${frame.streamId} ${frame.errorCode}`;
      case "SETTINGS":
        return frame.ack ? "SETTINGS ack" : "SETTINGS";
      case "PING":
        return frame.ack ? `PING ack ${frame.opaque[0]}` : "PING";
      case "GOAWAY":
        return `GOAWAY ${frame.lastStreamId} ${frame.errorCode}`;
      case "WINDOW_UPDATE":
        return `WINDOW_UPDATE ${frame.streamId} ${frame.increment}`;
      default:
        return frame.type;
    }
  }
}

function end({ endStream }: { readonly endStream: boolean }): string {
  return endStream ? " end" : "";
}

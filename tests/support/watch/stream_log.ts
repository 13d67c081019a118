/**
 * Handlers of one HTTP/2 stream that write down what happens.
 *
 * @module
 */

import type { HeaderField } from "../../../proto/hpack/header_field.ts";
import type {
  Stream,
  StreamEvents,
  StreamReset,
} from "../../../proto/streams/stream.ts";

/** See the module description. */
export class StreamLog implements StreamEvents {
  /** Such as `headers 200`, `data 5`, `end`, in order. */
  readonly events: string[] = [];
  bodyBytes = 0;
  headers: readonly HeaderField[] = [];
  trailers: readonly HeaderField[] = [];
  resetBy: StreamReset | undefined;
  hasEnded = false;
  /** What to do with each piece; by default it is consumed at once. */
  onPiece: (chunk: Uint8Array) => void = (chunk) =>
    this.stream?.consumed(chunk.length);
  onRoom: () => void = () => {};
  onHead: () => void = () => {};
  onOver: () => void = () => {};

  /** @param stream Set it later for a stream that is not opened yet. */
  constructor(public stream?: Stream) {}

  onHeaders(fields: readonly HeaderField[]): void {
    this.headers = fields;
    const status = fields.find(({ name }) => name === ":status")?.value;
    this.events.push(`headers ${status ?? "request"}`);
    this.onHead();
  }

  onInformational(fields: readonly HeaderField[]): void {
    this.events.push(`informational ${fields[0]?.value}`);
  }

  onData(chunk: Uint8Array): void {
    this.bodyBytes += chunk.length;
    this.events.push(`data ${chunk.length}`);
    this.onPiece(chunk);
  }

  onTrailers(fields: readonly HeaderField[]): void {
    this.trailers = fields;
    this.events.push("trailers");
  }

  onEnd(): void {
    this.hasEnded = true;
    this.events.push("end");
    this.onOver();
  }

  onWritable(): void {
    this.events.push("writable");
    this.onRoom();
  }

  onReset(reset: StreamReset): void {
    this.resetBy = reset;
    this.events.push(`reset ${reset.by} ${reset.code}`);
  }
}

/** A request's header section. */
export function requestFields(
  path = "/",
  extra: readonly HeaderField[] = [],
): HeaderField[] {
  return [
    { name: ":method", value: "POST" },
    { name: ":scheme", value: "http" },
    { name: ":path", value: path },
    { name: ":authority", value: "test" },
    ...extra,
  ];
}

/** A response's header section. */
export function responseFields(status = "200"): HeaderField[] {
  return [{ name: ":status", value: status }];
}

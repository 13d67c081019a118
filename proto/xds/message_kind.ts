/**
 * Messages of xDS off the hot path: resources, and the content of their `Any`
 * fields.
 *
 * Layer: xDS. The messages are those of `protos/`, which is our own subset of
 * what is published as xDS v3 (a test compares it with that), and of
 * `service.proto`, a type of our own. Unknown fields pass.
 *
 * @module
 */

import type protobuf from "protobufjs/light.js";
import {
  type MessageCodec,
  type Packages,
  Schema,
} from "../grpc/message_codec.ts";

/** What stands before a message's full name in an `Any`. */
const TYPE_URL_PREFIX = "type.googleapis.com/";

/** A message, its codec, and what an `Any` calls it. */
export interface MessageKind<T extends object> extends MessageCodec<T, T> {
  /** `type.googleapis.com/` and the full name. */
  readonly typeUrl: string;
  /** Appends a message to the writer. */
  write(message: T, writer: protobuf.Writer): void;
}

/** All messages; most commands never build them, for they never speak xDS. */
export class XdsSchema {
  readonly #schema: Schema;

  constructor(packages: Packages) {
    this.#schema = new Schema(packages);
  }

  /** @throws {TypeError} When no file has a message of that name. */
  type(name: string): protobuf.Type {
    return this.#schema.type(name);
  }

  /** The message of a type URL; `undefined` when no file has it. */
  typeOfUrl(typeUrl: string): protobuf.Type | undefined {
    return typeUrl.startsWith(TYPE_URL_PREFIX)
      ? this.#schema.find(typeUrl.slice(TYPE_URL_PREFIX.length))
      : undefined;
  }

  /**
   * A codec whose messages omit fields that are not on the wire; int64 are
   * numbers.
   */
  codec<T extends object>(name: string): MessageKind<T> {
    const schema = this.#schema;
    let known: protobuf.Type | undefined;
    const type = () => known ??= schema.type(name);
    return {
      typeUrl: `${TYPE_URL_PREFIX}${name}`,
      // Plain data of these types is what protobufjs encodes, as it is. A copy,
      // because resources are kept: it gives a Buffer, maybe a piece of a larger.
      encode: (message) => new Uint8Array(type().encode(message).finish()),
      write: (message, writer) => void type().encode(message, writer),
      decode: (bytes) => schema.decode(name, bytes, { longs: Number }) as T,
    };
  }
}

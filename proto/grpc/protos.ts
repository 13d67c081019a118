/**
 * Protobuf messages out of `.proto` text, for everything that is not hot.
 *
 * Layer: gRPC. The text is embedded in a module, never read from a file, so
 * that a bundle is complete. Knows no particular message.
 *
 * @module
 */

import protobuf from "protobufjs";
import { GrpcError, StatusCode } from "./status.ts";

/** Turns plain objects into bytes and back; `T` is what the .proto says. */
export interface MessageCodec<T> {
  encode(message: T): Uint8Array;
  /**
   * Fields that are absent have their default; enums are numbers; `int64`
   * fields are decimal strings, exact at any size.
   *
   * @throws {GrpcError} INVALID_ARGUMENT when `bytes` are no such message.
   */
  decode(bytes: Uint8Array): T;
}

/** Reads .proto text; the codecs are looked up by full name, such as `pkg.Name`. */
export function parseProto(
  source: string,
): <T extends object>(name: string) => MessageCodec<T> {
  const { root } = protobuf.parse(source);
  root.resolveAll();
  return <T extends object>(name: string) =>
    codecOf<T>(name, root.lookupType(name));
}

function codecOf<T extends object>(
  name: string,
  type: protobuf.Type,
): MessageCodec<T> {
  return {
    encode: (message) =>
      type.encode(type.fromObject(message as Record<string, unknown>)).finish(),
    decode(bytes) {
      let message: protobuf.Message;
      try {
        message = type.decode(bytes);
      } catch (error) {
        // Whatever protobufjs throws here is about the peer's bytes.
        throw new GrpcError(
          StatusCode.INVALID_ARGUMENT,
          `Cannot read a ${name}: ${(error as Error).message}`,
        );
      }
      return type.toObject(message, {
        defaults: true,
        arrays: true,
        objects: true,
        longs: String,
      }) as T;
    },
  };
}

/**
 * Protobuf messages that are not hot, by descriptors out of the `.proto` files.
 *
 * Layer: gRPC. The descriptors stand in generated modules (`deno task messages`),
 * so nothing is parsed and no file is read at run time. Knows no particular
 * message.
 *
 * @module
 */

import protobuf from "npm:protobufjs@8.8.1/light.js";
import { GrpcError, StatusCode } from "./status.ts";

/** What is encoded: every field may be left out and has its default then. */
export type Draft<T> = T extends
  Uint8Array | string | number | boolean | null | undefined ? T
  : T extends readonly (infer Item)[] ? readonly Draft<Item>[]
  : { readonly [K in keyof T]?: Draft<T[K]> | undefined };

/** Turns bytes into plain objects. */
export interface MessageDecoder<T> {
  /** @throws {GrpcError} INVALID_ARGUMENT when `bytes` are no such message. */
  decode(bytes: Uint8Array): T;
}

/** And back. */
export interface MessageCodec<T, Input = Draft<T>> extends MessageDecoder<T> {
  encode(message: Input): Uint8Array;
}

/** Messages and enums by package, as protobufjs describes them. */
export type Packages = Readonly<
  Record<string, Readonly<Record<string, object>>>
>;

/** The messages of a set of `.proto` files; built at the first use. */
export class Schema {
  /** protobufjs walks through all packages for each look-up. */
  readonly #types = new Map<string, protobuf.Type>();
  #root: protobuf.Root | undefined;

  constructor(private readonly packages: Packages) {}

  /**
   * The type of a message.
   *
   * @param name Such as `google.protobuf.Any`.
   * @returns `undefined` when no file has it.
   */
  find(name: string): protobuf.Type | undefined {
    const known = this.#types.get(name);
    if (known !== undefined) return known;
    this.#root ??= rootOf(this.packages);
    const found = this.#root.lookup(name);
    if (!(found instanceof protobuf.Type)) return undefined;
    this.#types.set(name, found);
    return found;
  }

  /** @throws {TypeError} When no file has a message of that name. */
  type(name: string): protobuf.Type {
    const found = this.find(name);
    if (found === undefined) throw new TypeError(`${name} is no message`);
    return found;
  }

  /**
   * A codec whose messages have all fields: a field that is not on the wire has
   * its default, `null` for a message. Members of a `oneof` are present or
   * absent. Enums are numbers; 64-bit integers are decimal strings, exact at
   * any size.
   */
  codec<T extends object>(name: string): MessageCodec<T> {
    return {
      encode: (message) => {
        const type = this.type(name);
        return type.encode(type.fromObject(message)).finish();
      },
      decode: (bytes) =>
        this.decode(name, bytes, {
          defaults: true,
          arrays: true,
          objects: true,
          longs: String,
        }) as T,
    };
  }

  /** @throws {GrpcError} INVALID_ARGUMENT when `bytes` are no such message. */
  decode(
    name: string,
    bytes: Uint8Array,
    form: protobuf.IConversionOptions,
  ): object {
    const type = this.type(name);
    try {
      return type.toObject(type.decode(bytes), form);
    } catch (error) {
      // Every error that protobufjs throws here is about the peer's bytes.
      throw new GrpcError(
        StatusCode.INVALID_ARGUMENT,
        `Cannot read a ${name}: ${(error as Error).message}`,
      );
    }
  }
}

function rootOf(packages: Packages): protobuf.Root {
  const root = new protobuf.Root();
  for (const [name, nested] of Object.entries(packages)) {
    root.define(name, nested as Record<string, protobuf.AnyNestedObject>);
  }
  root.resolveAll();
  return root;
}

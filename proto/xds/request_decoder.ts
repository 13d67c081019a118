/**
 * Decodes requests of clients.
 *
 * Layer: xDS. Hot: a thousand clients answer every response, and each repeats
 * all its names. So requests are walked by hand, and names are read only when
 * they are new (`name_lists.ts`). Tests compare with what protobufjs reads.
 *
 * Like every protobuf decoder it ignores unknown content: unknown fields and
 * known fields of another wire type.
 *
 * @module
 */

import { joinedBytes } from "../bytes/byte_arrays.ts";
import protobuf from "protobufjs/minimal.js";
import { GrpcError } from "../grpc/status.ts";
import { kept } from "../peer/quoted.ts";
import type {
  DeltaRequest,
  DiscoveryMode,
  DiscoveryRequest,
  ErrorDetail,
  SotwRequest,
} from "./discovery.ts";
import {
  NAME_BYTES_MAX,
  type NameCount,
  NameLists,
  passSection,
  tooMuch,
} from "./name_lists.ts";
import { decodeNode } from "./node_codec.ts";
import { malformed, readText, readView } from "./read_fields.ts";
import { RpcStatus } from "./xds_messages.ts";

const { Reader } = protobuf;

/**
 * The longest request, for the reader of messages: 20,000 names of 100 bytes. A
 * client can make the server hold one that is not complete.
 */
export const REQUEST_BYTES_MAX = 2_097_152;

/** Bytes of a type URL, a version and a nonce. */
export const REQUEST_TEXT_BYTES_MAX = 1_024;

/** Characters that are kept of a client's message in a NACK. */
export const ERROR_MESSAGE_MAX = 4_096;

/** Into how many places of a request one field may be strewn. */
export const PIECES_MAX = 64;

/** How bytes of a field are put together. */
type FieldKind =
  /** The last one counts. */
  | "text"
  /** Several are merged. */
  | "message"
  /** With their tags; see `name_lists.ts`. */
  | "names"
  | "versions";

type Shape = Readonly<Record<number, FieldKind>>;

const SOTW = {
  versionInfo: 1,
  node: 2,
  resourceNames: 3,
  typeUrl: 4,
  responseNonce: 5,
  errorDetail: 6,
} as const;

const SOTW_SHAPE: Shape = {
  [SOTW.versionInfo]: "text",
  [SOTW.node]: "message",
  [SOTW.resourceNames]: "names",
  [SOTW.typeUrl]: "text",
  [SOTW.responseNonce]: "text",
  [SOTW.errorDetail]: "message",
};

const DELTA = {
  node: 1,
  typeUrl: 2,
  subscribe: 3,
  unsubscribe: 4,
  initialVersions: 5,
  responseNonce: 6,
  errorDetail: 7,
} as const;

const DELTA_SHAPE: Shape = {
  [DELTA.node]: "message",
  [DELTA.typeUrl]: "text",
  [DELTA.subscribe]: "names",
  [DELTA.unsubscribe]: "names",
  [DELTA.initialVersions]: "versions",
  [DELTA.responseNonce]: "text",
  [DELTA.errorDetail]: "message",
};

const LENGTH_DELIMITED = 2;

/** One serves all clients. */
export class RequestDecoder {
  readonly #lists = new NameLists();

  /** Different lists of names that are in use. */
  get nameLists(): number {
    return this.#lists.size;
  }

  /**
   * Reads `DiscoveryRequest` or `DeltaDiscoveryRequest`.
   *
   * @param bytes Only looked at during the call.
   * @throws {GrpcError} INVALID_ARGUMENT when they are no such message,
   *   RESOURCE_EXHAUSTED over one of the limits.
   */
  decode(mode: DiscoveryMode, bytes: Uint8Array): DiscoveryRequest {
    try {
      return mode === "sotw" ? this.#sotw(bytes) : this.#delta(bytes);
    } catch (error) {
      if (error instanceof GrpcError) throw error;
      throw malformed("request", bytes, error);
    }
  }

  #sotw(bytes: Uint8Array): SotwRequest {
    const fields = new Fields(bytes, SOTW_SHAPE);
    return {
      mode: "sotw",
      node: fields.message(SOTW.node, decodeNode),
      typeUrl: fields.text(SOTW.typeUrl),
      versionInfo: fields.text(SOTW.versionInfo),
      resourceNames: this.#lists.namesOf(fields.section(SOTW.resourceNames)),
      responseNonce: fields.text(SOTW.responseNonce),
      errorDetail: fields.message(SOTW.errorDetail, decodeError),
    };
  }

  #delta(bytes: Uint8Array): DeltaRequest {
    const fields = new Fields(bytes, DELTA_SHAPE);
    const versions = fields.section(DELTA.initialVersions);
    return {
      mode: "delta",
      node: fields.message(DELTA.node, decodeNode),
      typeUrl: fields.text(DELTA.typeUrl),
      subscribe: this.#lists.namesOf(fields.section(DELTA.subscribe)),
      unsubscribe: this.#lists.namesOf(fields.section(DELTA.unsubscribe)),
      initialVersions: this.#lists.versionsOf(versions),
      responseNonce: fields.text(DELTA.responseNonce),
      errorDetail: fields.message(DELTA.errorDetail, decodeError),
    };
  }
}

/** One request by field number: texts, and bytes that are not read yet. */
class Fields {
  // Arrays, for a Map would cost more than all the rest.
  readonly #texts: (string | undefined)[] = [];
  readonly #pieces: (Uint8Array[] | undefined)[] = [];

  /** @throws {Error} When `bytes` are malformed, or too much of something. */
  constructor(bytes: Uint8Array, shape: Shape) {
    const reader = new Reader(bytes);
    const count: NameCount = { names: 0 };
    while (reader.pos < reader.len) {
      const start = reader.pos;
      const tag = reader.tag();
      const field = tag >>> 3;
      const kind = (tag & 7) === LENGTH_DELIMITED ? shape[field] : undefined;
      switch (kind) {
        case undefined:
          reader.skipType(tag & 7, 0, field);
          break;
        case "text":
          this.#texts[field] = shortText(field, readView(reader));
          break;
        case "message":
          this.#add(field, readView(reader));
          break;
        case "names":
          passSection(reader, tag, count, NAME_BYTES_MAX);
          this.#add(field, bytes.subarray(start, reader.pos));
          break;
        case "versions":
          passSection(reader, tag, count, 2 * NAME_BYTES_MAX);
          this.#add(field, bytes.subarray(start, reader.pos));
          break;
      }
    }
  }

  text(field: number): string {
    return this.#texts[field] ?? "";
  }

  /** A section with names; `undefined` if it has none. */
  section(field: number): Uint8Array | undefined {
    const pieces = this.#pieces[field];
    return pieces && wholeOf(pieces);
  }

  /** A message; in several pieces, what merging them gives. */
  message<T>(
    field: number,
    decode: (bytes: Uint8Array) => T,
  ): T | undefined {
    const pieces = this.#pieces[field];
    if (pieces === undefined) return undefined;
    // Each for itself must be well formed: two broken ones may make a whole.
    if (pieces.length > 1) pieces.forEach((piece) => decode(piece));
    return decode(wholeOf(pieces));
  }

  #add(field: number, piece: Uint8Array): void {
    const pieces = this.#pieces[field];
    if (pieces === undefined) this.#pieces[field] = [piece];
    else if (pieces.push(piece) > PIECES_MAX) {
      throw tooMuch(
        `field ${field} is strewn over more than ${PIECES_MAX} places`,
      );
    }
  }
}

function shortText(field: number, bytes: Uint8Array): string {
  if (bytes.length <= REQUEST_TEXT_BYTES_MAX) return readText(bytes);
  throw tooMuch(
    `field ${field} has ${bytes.length} bytes, at most ${REQUEST_TEXT_BYTES_MAX} are accepted`,
  );
}

function decodeError(bytes: Uint8Array): ErrorDetail {
  const { code = 0, message = "" } = RpcStatus.decode(bytes);
  return { code, message: kept(message, ERROR_MESSAGE_MAX) };
}

/** A body in one piece, as nearly all are, is not copied. */
function wholeOf(pieces: readonly Uint8Array[]): Uint8Array {
  return pieces.length === 1 ? pieces[0]! : joinedBytes(pieces);
}

/**
 * What clients repeat in their requests: lists of names, and names with
 * versions.
 *
 * Layer: xDS. A client repeats all its names in every request, with each ACK
 * too, and a thousand clients have the same ones. So a list is found by its raw
 * bytes (a section: fields with one tag), and read only when it is new.
 *
 * @module
 */

import protobuf from "protobufjs/minimal.js";
import { GrpcError, StatusCode } from "../grpc/status.ts";
import { Interned } from "./interned.ts";
import { readText, readView } from "./text_fields.ts";

const { Reader } = protobuf;
type Reader = protobuf.Reader;

/** Names in one request. */
export const NAMES_PER_REQUEST_MAX = 20_000;

/** Bytes of one name; with a version it has as many again. */
export const NAME_BYTES_MAX = 1_024;

const NO_NAMES: readonly string[] = Object.freeze([]);
const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

/** Wire type 2, which both fields of an entry have. */
const LENGTH_DELIMITED = 2;
const KEY_FIELD = 1;
const VALUE_FIELD = 2;

/** One serves all clients. */
export class NameLists {
  readonly #names = new Interned<readonly string[]>();
  readonly #versions = new Interned<ReadonlyMap<string, string>>();

  /** Different lists that are in use. */
  get size(): number {
    return this.#names.size + this.#versions.size;
  }

  /**
   * The names of a section.
   *
   * @param section Only looked at during the call; `undefined` names nothing.
   * @returns Frozen; the same array for the same bytes as long as it is in use.
   * @throws {TypeError} When a name is not UTF-8.
   */
  namesOf(section: Uint8Array | undefined): readonly string[] {
    if (section === undefined) return NO_NAMES;
    return this.#names.valueOf(section, readNames);
  }

  /**
   * A section of `map<string, string>`.
   *
   * @throws {Error} When an entry is broken.
   */
  versionsOf(section: Uint8Array | undefined): ReadonlyMap<string, string> {
    if (section === undefined) return NO_VERSIONS;
    return this.#versions.valueOf(section, readVersions);
  }
}

/** How many names a request has had so far. */
export interface NameCount {
  names: number;
}

/**
 * Passes the field whose tag has just been read, and all that follow it with the
 * same tag, without reading what is in them.
 *
 * @param bytesMax Of one field.
 * @throws {GrpcError} RESOURCE_EXHAUSTED over a limit.
 * @throws {RangeError} When a field is cut short.
 */
export function passSection(
  reader: Reader,
  tag: number,
  count: NameCount,
  bytesMax: number,
): void {
  const { buf, len } = reader;
  do {
    const length = reader.size();
    if (length > bytesMax) {
      throw tooMuch(
        `a name has ${length} bytes, at most ${bytesMax} are accepted`,
      );
    }
    if (++count.names > NAMES_PER_REQUEST_MAX) {
      throw tooMuch(`more than ${NAMES_PER_REQUEST_MAX} names`);
    }
    if (length > len - reader.pos) throw new RangeError("a name is cut short");
    reader.pos += length;
  } while (reader.pos < len && buf[reader.pos] === tag && ++reader.pos);
}

function readNames(section: Uint8Array): readonly string[] {
  const reader = new Reader(section);
  const names: string[] = [];
  while (reader.pos < reader.len) {
    reader.tag();
    names.push(readText(readView(reader)));
  }
  return Object.freeze(names);
}

function readVersions(section: Uint8Array): ReadonlyMap<string, string> {
  const reader = new Reader(section);
  const versions = new Map<string, string>();
  while (reader.pos < reader.len) {
    reader.tag();
    const entry = new Reader(readView(reader));
    let [name, version] = ["", ""];
    while (entry.pos < entry.len) {
      const tag = entry.tag();
      if (tag === (KEY_FIELD << 3 | LENGTH_DELIMITED)) {
        name = readText(readView(entry));
      } else if (tag === (VALUE_FIELD << 3 | LENGTH_DELIMITED)) {
        version = readText(readView(entry));
      } else {
        entry.skipType(tag & 7, 0, tag >>> 3);
      }
    }
    versions.set(name, version);
  }
  return versions;
}

/** What is wrong with a request that is longer than any of a client. */
export function tooMuch(what: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot read a discovery request: ${what}`,
  );
}

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
import { readText, readView } from "./read_fields.ts";

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
   * @param section Read only during the call; `undefined` has no names.
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

/** The number of names in the request until now. */
export interface NameCount {
  names: number;
}

/**
 * Skips the field whose tag has just been read, and all following fields with
 * the same tag.
 *
 * @param bytesMax Limit for one field.
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

/** The error of a request that is longer than any client needs. */
export function tooMuch(what: string): GrpcError {
  return new GrpcError(
    StatusCode.RESOURCE_EXHAUSTED,
    `Cannot read a discovery request: ${what}`,
  );
}

/** Values of one hash that are kept. */
export const ROW_MAX = 4;

interface Entry<T extends object> {
  readonly bytes: Uint8Array;
  readonly value: WeakRef<T>;
}

export class Interned<T extends object> {
  readonly #rows = new Map<number, Entry<T>[]>();
  /** Clients with the same request send it one after another. */
  #last: Entry<T> | undefined;
  readonly #collected = new FinalizationRegistry<number>((hash) =>
    this.#sweep(hash)
  );

  /** Different bytes that are known. */
  get size(): number {
    let size = 0;
    for (const row of this.#rows.values()) size += row.length;
    return size;
  }

  /**
   * The value of `bytes`, made by `read` unless it is known.
   *
   * @param bytes Only looked at during the call.
   * @param read Gets bytes that never change. What it throws is passed on.
   */
  valueOf(bytes: Uint8Array, read: (bytes: Uint8Array) => T): T {
    const view = new DataView(
      bytes.buffer,
      bytes.byteOffset,
      bytes.byteLength,
    );
    const last = this.#last;
    if (last !== undefined && isEqual(view, last.bytes)) {
      const there = last.value.deref();
      if (there !== undefined) return there;
    }
    const hash = hashOf(view);
    const row = this.#rows.get(hash);
    if (row !== undefined) {
      for (const entry of row) {
        if (!isEqual(view, entry.bytes)) continue;
        const there = entry.value.deref();
        if (there === undefined) continue;
        this.#last = entry;
        return there;
      }
      if (row.length >= ROW_MAX) this.#sweep(hash);
    }
    // Not `slice`: of a Buffer that would be the same bytes again.
    return this.#add(hash, new Uint8Array(bytes), read);
  }

  #add(
    hash: number,
    bytes: Uint8Array,
    read: (bytes: Uint8Array) => T,
  ): T {
    const value = read(bytes);
    const row = this.#rows.get(hash) ?? [];
    if (row.length >= ROW_MAX) return value;
    this.#last = { bytes, value: new WeakRef(value) };
    row.push(this.#last);
    this.#rows.set(hash, row);
    this.#collected.register(value, hash);
    return value;
  }

  /** Forgets values that are not in use any more. */
  #sweep(hash: number): void {
    const row = this.#rows.get(hash);
    const left = row?.filter(({ value }) => value.deref() !== undefined);
    if (this.#last?.value.deref() === undefined) this.#last = undefined;
    if (left === undefined || left.length === 0) this.#rows.delete(hash);
    else this.#rows.set(hash, left);
  }
}

/** FNV-1a over words of 32 bits; the same on every machine. */
function hashOf(view: DataView): number {
  const words = view.byteLength & ~3;
  let hash = 0x811c9dc5 ^ view.byteLength;
  let at = 0;
  for (; at < words; at += 4) {
    hash = Math.imul(hash ^ view.getUint32(at), 0x01000193);
    hash ^= hash >>> 15;
  }
  for (; at < view.byteLength; at++) {
    hash = Math.imul(hash ^ view.getUint8(at), 0x01000193);
  }
  return hash;
}

function isEqual(view: DataView, known: Uint8Array): boolean {
  if (view.byteLength !== known.length) return false;
  const other = new DataView(known.buffer, known.byteOffset, known.length);
  const words = known.length & ~3;
  let at = 0;
  for (; at < words; at += 4) {
    if (view.getUint32(at) !== other.getUint32(at)) return false;
  }
  for (; at < known.length; at++) {
    if (view.getUint8(at) !== other.getUint8(at)) return false;
  }
  return true;
}

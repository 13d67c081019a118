/**
 * Queries to name servers and their answers (RFC 1035, 2181, 2308, 6891): bytes
 * in, bytes out.
 *
 * An attacker on the path, or one that guesses well, may answer. So an answer
 * must have the query's id and repeat the question; nothing else in it is
 * believed but what leads from the name that was queried, alias by alias, to
 * addresses. Reading is bounded: a name points only backwards and has 255
 * bytes, and the number of records read is limited.
 *
 * @module
 */

import { formatIpAddress } from "../../proto/peer/ip_address.ts";

/** The record types that are queried. */
export type RecordType = "A" | "AAAA";

/** One question. */
export interface DnsQuestion {
  /** In small letters, without a dot at its end; of labels that can be sent. */
  readonly name: string;
  readonly type: RecordType;
}

/** What a name server answered. */
export type DnsReply =
  /** Addresses of that type, perhaps none; the name may have others. */
  | {
    readonly kind: "answer";
    readonly addresses: readonly string[];
    /** Seconds for which that is so. */
    readonly ttl: number;
    /** False: it does not exist, with no type at all. */
    readonly exists: boolean;
  }
  /** It did not fit: query by TCP. */
  | { readonly kind: "truncated" }
  /** It does not know EDNS. */
  | { readonly kind: "plainer" }
  /** The server failed. */
  | { readonly kind: "failed"; readonly why: string };

/** Records of an answer that are read. */
export const RECORDS_MAX = 256;

/** Addresses of a name that are taken. */
export const ADDRESSES_MAX = 64;

/** Aliases in a row that are followed; more are a loop, or want to be one. */
export const ALIASES_MAX = 16;

/** What we take over UDP: more is cut up on the way, and lost. */
export const UDP_BYTES_MAX = 1_232;

const HEADER_BYTES = 12;
const TYPES: Readonly<Record<RecordType, number>> = { A: 1, AAAA: 28 };
const ADDRESS_BYTES: Readonly<Record<RecordType, number>> = { A: 4, AAAA: 16 };
const TYPE_CNAME = 5;
const TYPE_SOA = 6;
const TYPE_OPT = 41;
const CLASS_IN = 1;
const TTL_MAX = 2 ** 31 - 1;

/** For sentences (RFC 1035 §4.1.1). */
const RCODES: Readonly<Record<number, string>> = {
  2: "SERVFAIL",
  5: "REFUSED",
};
const NOERROR = 0;
const FORMERR = 1;
const NXDOMAIN = 3;
const NOTIMP = 4;

/** Writes a question that wants recursion. */
export function encodeQuestion(
  { name, type }: DnsQuestion,
  id: number,
  hasEdns: boolean,
): Uint8Array<ArrayBuffer> {
  const labels = name.split(".").map((label) =>
    new TextEncoder().encode(label)
  );
  const bytes: number[] = [id >> 8, id & 0xff, 0x01, 0x00, 0, 1, 0, 0, 0, 0];
  bytes.push(0, hasEdns ? 1 : 0);
  for (const label of labels) bytes.push(label.length, ...label);
  bytes.push(0, 0, TYPES[type], 0, CLASS_IN);
  if (hasEdns) {
    bytes.push(0, 0, TYPE_OPT, UDP_BYTES_MAX >> 8, UDP_BYTES_MAX & 0xff);
    bytes.push(0, 0, 0, 0, 0, 0);
  }
  return Uint8Array.from(bytes);
}

/** The number of a message; `undefined` when it is too short to have one. */
export function idOf(bytes: Uint8Array): number | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  return (bytes[0]! << 8) | bytes[1]!;
}

/**
 * Reads an answer, which is not trusted.
 *
 * @returns `undefined` when it does not answer `question`.
 */
export function readReply(
  bytes: Uint8Array,
  question: DnsQuestion,
  id: number,
): DnsReply | undefined {
  if (idOf(bytes) !== id) return undefined;
  const flags = bytes[2]!;
  const isAnswer = (flags & 0x80) !== 0 && (flags & 0x78) === 0;
  if (!isAnswer) return undefined;
  const code = bytes[3]! & 0x0f;
  const reader = new Reader(bytes);
  const counts = reader.counts();
  const isPlainer = code === FORMERR || code === NOTIMP;
  // A server that does not understand a question may not be able to repeat it.
  if (isPlainer && counts.questions === 0) return { kind: "plainer" };
  try {
    if (counts.questions !== 1 || !reader.repeats(question)) return undefined;
  } catch (error) {
    if (error instanceof MalformedError) return undefined;
    throw error;
  }
  if (isPlainer) return { kind: "plainer" };
  if ((flags & 0x02) !== 0) return { kind: "truncated" };
  if (code !== NOERROR && code !== NXDOMAIN) {
    const name = RCODES[code] ?? `code ${code}`;
    return { kind: "failed", why: `server misbehaving (it answers ${name})` };
  }
  try {
    return addressesIn(reader, question, counts, code === NOERROR);
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    return { kind: "failed", why: "cannot unmarshal DNS message" };
  }
}

/** It ends too early, or goes round in circles. */
class MalformedError extends Error {}

interface Counts {
  readonly questions: number;
  readonly answers: number;
  readonly authorities: number;
}

interface Found {
  readonly addresses: string[];
  ttl: number;
}

function addressesIn(
  reader: Reader,
  question: DnsQuestion,
  counts: Counts,
  exists: boolean,
): DnsReply {
  const aliases = new Map<string, { to: string; ttl: number }>();
  const found = new Map<string, Found>();
  const answers = Math.min(counts.answers, RECORDS_MAX);
  for (let index = 0; index < answers; index++) {
    const record = reader.record();
    if (record.class !== CLASS_IN) continue;
    if (record.type === TYPE_CNAME) {
      const alias = { to: reader.nameAt(record.at), ttl: record.ttl };
      if (!aliases.has(record.name)) aliases.set(record.name, alias);
    } else if (record.type === TYPES[question.type]) {
      keepAddress(found, record, reader.data(record), question.type);
    }
  }
  let { name } = question;
  let ttl = TTL_MAX;
  for (let steps = 0; steps <= ALIASES_MAX; steps++) {
    const here = found.get(name);
    if (here !== undefined) {
      const { addresses } = here;
      return { ...ANSWER, addresses, ttl: Math.min(ttl, here.ttl) };
    }
    const alias = aliases.get(name);
    if (alias === undefined) {
      const negative = counts.answers > RECORDS_MAX
        ? 0
        : negativeTtl(reader, counts.authorities);
      return { ...ANSWER, ttl: Math.min(ttl, negative), exists };
    }
    ttl = Math.min(ttl, alias.ttl);
    name = alias.to;
  }
  return { kind: "failed", why: "aliases go round in circles" };
}

const ANSWER = {
  kind: "answer",
  addresses: [] as readonly string[],
  exists: true,
} as const;

function keepAddress(
  found: Map<string, Found>,
  { name, ttl }: Entry,
  data: Uint8Array,
  type: RecordType,
): void {
  if (data.length !== ADDRESS_BYTES[type]) return;
  const here = found.get(name) ?? { addresses: [], ttl };
  found.set(name, here);
  here.ttl = Math.min(here.ttl, ttl);
  const address = formatIpAddress(data);
  if (here.addresses.length >= ADDRESSES_MAX) return;
  if (!here.addresses.includes(address)) here.addresses.push(address);
}

/** For how long there will be nothing (RFC 2308 §5); 0: not given. */
function negativeTtl(reader: Reader, authorities: number): number {
  for (let index = 0; index < Math.min(authorities, RECORDS_MAX); index++) {
    const record = reader.record();
    if (record.type !== TYPE_SOA || record.bytes < 4) continue;
    const data = reader.data(record);
    const minimum = new DataView(data.buffer, data.byteOffset, data.length)
      .getUint32(data.length - 4);
    return Math.min(record.ttl, minimum);
  }
  return 0;
}

interface Entry {
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly ttl: number;
  /** Where its data begin, and how much they are. */
  readonly at: number;
  readonly bytes: number;
}

/** Reads a message from front to back. @throws {MalformedError} */
class Reader {
  readonly #view: DataView;
  #at = HEADER_BYTES;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(
      bytes.buffer,
      bytes.byteOffset,
      bytes.byteLength,
    );
  }

  counts(): Counts {
    const [questions, answers, authorities] = [4, 6, 8]
      .map((at) => this.#view.getUint16(at));
    return {
      questions: questions!,
      answers: answers!,
      authorities: authorities!,
    };
  }

  /** Whether the question is the one that was sent. */
  repeats({ name, type }: DnsQuestion): boolean {
    const asked = this.#name();
    const [askedType, askedClass] = [this.#uint16(), this.#uint16()];
    return asked === name && askedType === TYPES[type] &&
      askedClass === CLASS_IN;
  }

  record(): Entry {
    const name = this.#name();
    const type = this.#uint16();
    const recordClass = this.#uint16();
    const ttl = this.#uint32();
    const bytes = this.#uint16();
    const at = this.#at;
    this.#skip(bytes);
    // One with its highest bit set is none (RFC 2181 §8).
    const limited = ttl > TTL_MAX ? 0 : ttl;
    return { name, type, class: recordClass, ttl: limited, at, bytes };
  }

  data({ at, bytes }: Entry): Uint8Array {
    return this.bytes.subarray(at, at + bytes);
  }

  nameAt(at: number): string {
    return readName(this.bytes, at).name;
  }

  #name(): string {
    const { name, end } = readName(this.bytes, this.#at);
    this.#at = end;
    return name;
  }

  #uint16(): number {
    const at = this.#at;
    this.#skip(2);
    return this.#view.getUint16(at);
  }

  #uint32(): number {
    const at = this.#at;
    this.#skip(4);
    return this.#view.getUint32(at);
  }

  #skip(bytes: number): void {
    this.#at += bytes;
    if (this.#at > this.bytes.length) throw new MalformedError();
  }
}

/** All bytes of a name (RFC 1035 §3.1). */
const NAME_BYTES_MAX = 255;

function readName(
  bytes: Uint8Array,
  from: number,
): { name: string; end: number } {
  const labels: string[] = [];
  let at = from;
  let end = 0;
  let before = from;
  let total = 1;
  for (;;) {
    const length = bytes[at];
    if (length === undefined) throw new MalformedError();
    if (length >= 0xc0) {
      const to = ((length & 0x3f) << 8) | (bytes[at + 1] ?? 0xff);
      end ||= at + 2;
      // Only backwards, so it comes to an end.
      if (to >= before || at + 2 > bytes.length) throw new MalformedError();
      before = at = to;
      continue;
    }
    if (length > 63) throw new MalformedError();
    if (length === 0) return { name: labels.join("."), end: end || at + 1 };
    total += length + 1;
    if (total > NAME_BYTES_MAX || at + 1 + length > bytes.length) {
      throw new MalformedError();
    }
    labels.push(labelText(bytes.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
}

/** In small letters; bytes that are no part of a host's name are written out. */
function labelText(label: Uint8Array): string {
  let text = "";
  for (const byte of label) {
    const letter = String.fromCharCode(byte).toLowerCase();
    text += /^[a-z0-9_-]$/.test(letter) ? letter : `\\${byte}`;
  }
  return text;
}

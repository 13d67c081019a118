/**
 * DNS messages in, DNS messages out (RFC 1035, 2308, 2782, 6891): the questions
 * of {@linkcode DnsZone}, and no others. It forwards nothing and caches
 * nothing.
 *
 * A client that reaches the port may send anything, so no input makes it throw.
 * A message that is no question gets no answer, so that two servers never talk
 * to each other; a malformed question gets an error code.
 *
 * @module
 */

import { Buffer } from "node:buffer";
// @ts-types="./dns_packet.d.ts"
import packet from "dns-packet";
import type { DnsAsker, DnsFact, DnsZone, ZoneAnswer } from "./dns_zone.ts";
import { SERVICE_DOMAIN } from "./local_names.ts";

/**
 * Seconds for which clients may keep an answer, a negative one as well: about
 * the time until a new service is seen.
 */
export const TTL_SECONDS = 5;

/**
 * The longest question: a name of 255 bytes, and options. A longer one would
 * cost time to read, which any client could ask for.
 */
export const QUESTION_BYTES_MAX = 1_024;

/** The longest answer over UDP: larger ones are cut up on the way, and lost. */
export const DNS_DATAGRAM_BYTES_MAX = 1_232;

/**
 * Limit over UDP for clients that do not state a larger one (RFC 1035 §4.2.1).
 */
const PLAIN_BYTES_MAX = 512;

const HEADER_BYTES = 12;

/**
 * Bits of the flags' first byte: the bit of answers, and those that an answer
 * repeats.
 */
const FLAG_ANSWER = 0x80;
const FLAGS_KEPT = 0x79; // The operation, and that recursion is wanted.
const OPERATION_SHIFT = 3;
const OPERATION_QUERY = 0;

/** Flags of an answer. */
const FLAG_AUTHORITATIVE = 0x0400;
const FLAG_TRUNCATED = 0x0200;
const FLAG_DNSSEC_WANTED = 0x8000;

/** RFC 1035 §4.1.1, and RFC 6891 §6.1.3, which takes eight bits more. */
const CODES = {
  NOERROR: 0,
  FORMERR: 1,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  BADVERS: 16,
} as const;

/** How a question was answered. */
export type DnsCode = keyof typeof CODES;

/** How a question came. */
export type DnsTransport = "udp" | "tcp";

type Options = packet.OptAnswer | undefined;

export class DnsResponder {
  /** Answers by code. */
  readonly counts = new Map<DnsCode, number>();

  constructor(private readonly zone: DnsZone) {}

  /** @returns `undefined` when there is no answer to send. */
  answer(
    bytes: Uint8Array,
    transport: DnsTransport,
    asker?: DnsAsker,
  ): Uint8Array | undefined {
    if (bytes.length < HEADER_BYTES || bytes[2]! & FLAG_ANSWER) {
      return undefined;
    }
    const header = headerOf(bytes);
    const operation = (bytes[2]! >> OPERATION_SHIFT) & 0x0f;
    if (operation !== OPERATION_QUERY) return this.#bare(header, "NOTIMP");
    const question = decode(bytes);
    if (question === undefined) return this.#bare(header, "FORMERR");
    const { asked, options } = question;
    const reply = this.#reply(asked, options, asker);
    this.#count(reply.code);
    const answer = encode(header, asked, options, reply);
    return answer.length <= bytesMax(transport, options)
      ? answer
      : shorten(header, question, reply, bytesMax(transport, options));
  }

  #reply(
    asked: packet.Question,
    options: Options,
    asker: DnsAsker | undefined,
  ): Reply {
    if ((options?.ednsVersion ?? 0) > 0) return { ...EMPTY, code: "BADVERS" };
    if (!ASKABLE_CLASSES.has(asked.class ?? "IN")) return REFUSED;
    if (TRANSFERS.has(asked.type)) return REFUSED;
    const found = this.zone.find(asked.name, asker);
    if (found.kind === "elsewhere") return REFUSED;
    const authority = this.#authority();
    if (found.kind === "unknown") {
      return { ...EMPTY, code: "NXDOMAIN", authorities: [authority] };
    }
    const isApex = asked.name.toLowerCase() === SERVICE_DOMAIN;
    const answers = isApex && asked.type === "SOA"
      ? [authority]
      : recordsOf(found, asked);
    if (answers.length === 0) return { ...EMPTY, authorities: [authority] };
    return { ...EMPTY, answers, additionals: this.#targetsOf(answers, asker) };
  }

  /** Addresses of the targets, so that clients need not ask for them. */
  #targetsOf(
    answers: readonly packet.Answer[],
    asker: DnsAsker | undefined,
  ): packet.Answer[] {
    const targets = new Set(
      answers.flatMap((one) => one.type === "SRV" ? [one.data.target] : []),
    );
    return [...targets].flatMap((name) => {
      const found = this.zone.find(name, asker);
      return [
        ...recordsOf(found, { name, type: "A" }),
        ...recordsOf(found, { name, type: "AAAA" }),
      ];
    });
  }

  /** What says for how long there will be nothing (RFC 2308 §3). */
  #authority(): packet.Answer {
    return {
      type: "SOA",
      name: SERVICE_DOMAIN,
      ttl: TTL_SECONDS,
      data: {
        mname: `ns.dns.${SERVICE_DOMAIN}`,
        rname: `hostmaster.${SERVICE_DOMAIN}`,
        serial: this.zone.version % 2 ** 32,
        refresh: TTL_SECONDS,
        retry: TTL_SECONDS,
        expire: TTL_SECONDS,
        minimum: TTL_SECONDS,
      },
    };
  }

  /**
   * An answer without the question, when that cannot be read, or its operation
   * is unknown.
   */
  #bare(header: Header, code: DnsCode): Uint8Array {
    this.#count(code);
    const flags = header.flags | CODES[code];
    return packet.encode({ type: "response", id: header.id, flags });
  }

  #count(code: DnsCode): void {
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1);
  }
}

/** What of the header comes back. */
interface Header {
  readonly id: number;
  readonly flags: number;
}

interface Reply {
  readonly code: DnsCode;
  readonly answers: readonly packet.Answer[];
  readonly authorities: readonly packet.Answer[];
  readonly additionals: readonly packet.Answer[];
}

const EMPTY: Reply = {
  code: "NOERROR",
  answers: [],
  authorities: [],
  additionals: [],
};
const REFUSED: Reply = { ...EMPTY, code: "REFUSED" };

const ASKABLE_CLASSES: ReadonlySet<string> = new Set(["IN", "ANY"]);

/** The library has them as types, too. */
const TRANSFERS: ReadonlySet<string> = new Set(["AXFR", "IXFR"]);

interface DnsQuery {
  readonly asked: packet.Question;
  readonly options: Options;
}

function headerOf(bytes: Uint8Array): Header {
  return {
    id: (bytes[0]! << 8) | bytes[1]!,
    flags: (bytes[2]! & FLAGS_KEPT) << 8,
  };
}

/**
 * @returns `undefined` unless it has exactly one question and the records that
 *   may follow.
 */
function decode(bytes: Uint8Array): DnsQuery | undefined {
  if (bytes.length > QUESTION_BYTES_MAX) return undefined;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  // Checked first, because the parser reads as many records as these announce.
  const [questions, answers, authorities, additionals] = [4, 6, 8, 10]
    .map((at) => buffer.readUInt16BE(at));
  // Two: options (RFC 6891 §6.1.1), and a signature.
  if (questions !== 1 || answers! + authorities! > 0 || additionals! > 2) {
    return undefined;
  }
  try {
    const decoded = packet.decode(buffer);
    const [asked] = decoded.questions;
    const options = decoded.additionals.filter(({ type }) => type === "OPT");
    // A name that decoding changes could not be repeated exactly in the answer.
    const again = packet.encode({ type: "query", questions: [asked!] });
    const isSame = again.subarray(HEADER_BYTES)
      .every((byte, index) => byte === bytes[HEADER_BYTES + index]);
    if (!isSame || options.length > 1) return undefined;
    return { asked: asked!, options: options[0] as Options };
  } catch {
    return undefined; // The library throws at whatever it cannot read.
  }
}

function recordsOf(
  found: ZoneAnswer,
  { name, type }: Pick<packet.Question, "name" | "type">,
): packet.Answer[] {
  if (found.kind !== "known") return [];
  return found.facts
    .filter((fact) => type === fact.type || type === "ANY")
    .map((fact) => recordOf(name, fact));
}

function recordOf(name: string, fact: DnsFact): packet.Answer {
  if (fact.type !== "SRV") {
    return { name, type: fact.type, ttl: TTL_SECONDS, data: fact.address };
  }
  const { port, target } = fact;
  const data = { priority: 0, weight: 0, port, target };
  return { name, type: "SRV", ttl: TTL_SECONDS, data };
}

function bytesMax(transport: DnsTransport, options: Options): number {
  if (transport === "tcp") return 65_535;
  const taken = options?.udpPayloadSize ?? PLAIN_BYTES_MAX;
  return Math.min(DNS_DATAGRAM_BYTES_MAX, Math.max(PLAIN_BYTES_MAX, taken));
}

/** Extras may be missing; if answers are, it has to be said (RFC 2181 §9). */
function shorten(
  header: Header,
  { asked, options }: DnsQuery,
  reply: Reply,
  bytesMax: number,
): Uint8Array {
  const plain = encode(header, asked, options, { ...reply, additionals: [] });
  if (plain.length <= bytesMax) return plain;
  const flags = header.flags | FLAG_TRUNCATED;
  return encode({ ...header, flags }, asked, options, EMPTY);
}

function encode(
  { id, flags }: Header,
  asked: packet.Question,
  options: Options,
  { code, answers, authorities, additionals }: Reply,
): Uint8Array {
  const isOurs = code === "NOERROR" || code === "NXDOMAIN";
  const number = CODES[code];
  return packet.encode({
    type: "response",
    id,
    flags: flags | (isOurs ? FLAG_AUTHORITATIVE : 0) | (number & 0x0f),
    questions: [asked],
    answers,
    authorities,
    additionals: [
      ...additionals,
      ...(options === undefined ? [] : [optionsOf(options, number >> 4)]),
    ],
  });
}

function optionsOf(
  { flags }: packet.OptAnswer,
  extendedRcode: number,
): packet.OptAnswer {
  return {
    type: "OPT",
    name: ".",
    udpPayloadSize: DNS_DATAGRAM_BYTES_MAX,
    extendedRcode,
    ednsVersion: 0,
    flags: flags & FLAG_DNSSEC_WANTED,
    options: [],
  };
}

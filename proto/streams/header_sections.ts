/**
 * What a header section must look like to be HTTP (RFC 9113 §8).
 *
 * Returns the reason why a section is malformed instead of throwing: §8.1.1
 * makes that a stream error, and the engine decides. Knows no gRPC and checks
 * no value beyond its characters: `:authority` may be anything, for gRPC peers
 * send percent-encoded socket paths, raw paths or nothing there.
 *
 * @module
 */

import {
  type HeaderField,
  ListMemo,
  SHARED_LISTS_MAX,
} from "../hpack/header_field.ts";

/** A valid section, with the fields that the engine needs. */
export interface SectionFacts {
  /** The method of a request, the status of a response, else empty. */
  readonly method: string;
  readonly status: number;
  /** From `content-length`; `undefined` when there was none. */
  readonly contentLength: number | undefined;
}

/** A section, or why it is malformed: one clause for people. */
type SectionCheck =
  | { readonly ok: true; readonly facts: SectionFacts }
  | { readonly ok: false; readonly problem: string };

/** Which pseudo fields may stand in front (§8.3). */
export type SectionKind = "request" | "response" | "trailers";

const PSEUDO_FIELDS: Readonly<Record<SectionKind, readonly string[]>> = {
  request: [":method", ":scheme", ":path", ":authority"],
  response: [":status"],
  trailers: [],
};

/** Fields of HTTP/1.1 connections, which must not appear (§8.2.2). */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** RFC 9110 §5.6.2 `token`, without upper case (§8.2.1). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Three bytes anywhere, white space at the edges (§8.2.1). */
const VALUE_BANNED = /[\0\r\n]|^[ \t]|[ \t]$/;
const DIGITS = /^[0-9]{1,15}$/;
const STATUS = /^[1-9][0-9]{2}$/;

/** Cached facts about sections that repeat, for all connections. */
const CHECKED: Readonly<Record<SectionKind, ListMemo<SectionCheck>>> = {
  request: new ListMemo(SHARED_LISTS_MAX),
  response: new ListMemo(SHARED_LISTS_MAX),
  trailers: new ListMemo(SHARED_LISTS_MAX),
};

/** Checks a whole section of `kind`. */
export function checkSection(
  kind: SectionKind,
  fields: readonly HeaderField[],
): SectionCheck {
  const known = CHECKED[kind].get(fields);
  if (known !== undefined) return known;
  const check = checkNewSection(kind, fields);
  CHECKED[kind].set(fields, check);
  return check;
}

function checkNewSection(
  kind: SectionKind,
  fields: readonly HeaderField[],
): SectionCheck {
  const pseudo = new Map<string, string>();
  let contentLength: number | undefined;
  let isRegular = false;
  for (const { name, value } of fields) {
    if (VALUE_BANNED.test(value)) {
      return malformed(`the value of ${show(name)} has a byte it must not`);
    }
    if (name.charCodeAt(0) === 0x3a) {
      if (isRegular) return malformed(`${show(name)} follows a regular field`);
      if (!PSEUDO_FIELDS[kind].includes(name)) {
        return malformed(`${show(name)} does not belong in a ${kind} section`);
      }
      if (pseudo.has(name)) return malformed(`${show(name)} is there twice`);
      pseudo.set(name, value);
      continue;
    }
    isRegular = true;
    const problem = checkRegular(name, value);
    if (problem !== undefined) return malformed(problem);
    if (name === "content-length") {
      if (!DIGITS.test(value)) return malformed("content-length is no number");
      if (contentLength !== undefined && contentLength !== Number(value)) {
        return malformed("there are two different content-lengths");
      }
      contentLength = Number(value);
    }
  }
  if (kind === "request") return checkRequest(pseudo, contentLength);
  if (kind === "response") return checkResponse(pseudo, contentLength);
  return passed("", 0, contentLength);
}

function checkRegular(name: string, value: string): string | undefined {
  if (!NAME.test(name)) return `${show(name)} is no field name in lower case`;
  if (CONNECTION_FIELDS.has(name)) {
    return `${name} is specific to HTTP/1.1 connections`;
  }
  // The one exception of §8.2.2.
  if (name === "te" && value !== "trailers") {
    return `te is ${show(value)}, wanted "trailers"`;
  }
  return undefined;
}

/** §8.3.1, and §8.5 for CONNECT. */
function checkRequest(
  pseudo: ReadonlyMap<string, string>,
  contentLength: number | undefined,
): SectionCheck {
  const method = pseudo.get(":method");
  if (method === undefined) return malformed(":method is missing");
  if (method === "CONNECT") {
    if (pseudo.has(":scheme") || pseudo.has(":path")) {
      return malformed("CONNECT has a :scheme or :path");
    }
    if (!pseudo.get(":authority")) return malformed("CONNECT names no target");
    return passed(method, 0, contentLength);
  }
  if (!pseudo.get(":scheme")) return malformed(":scheme is missing");
  if (!pseudo.get(":path")) return malformed(":path is missing or empty");
  return passed(method, 0, contentLength);
}

/** §8.3.2. */
function checkResponse(
  pseudo: ReadonlyMap<string, string>,
  contentLength: number | undefined,
): SectionCheck {
  const status = pseudo.get(":status");
  if (status === undefined) return malformed(":status is missing");
  if (!STATUS.test(status)) return malformed(`:status is ${show(status)}`);
  // §8.6: there is no 101 in HTTP/2.
  if (status === "101") return malformed(":status is 101");
  return passed("", Number(status), contentLength);
}

function passed(
  method: string,
  status: number,
  contentLength: number | undefined,
): SectionCheck {
  return { ok: true, facts: { method, status, contentLength } };
}

function malformed(problem: string): SectionCheck {
  return { ok: false, problem };
}

/** A peer's text in a message of ours: quoted, escaped and short. */
function show(text: string): string {
  return JSON.stringify(text.slice(0, 64));
}

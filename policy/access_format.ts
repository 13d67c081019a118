/**
 * How one connection looks in an access log: as JSON, as text (logfmt), or as
 * the line of NCSA and Apache, followed by the tunnel's own fields.
 *
 * A peer's text is shortened, and blanks, quotes and control characters in it
 * are escaped, so a peer cannot forge a field or a line.
 *
 * @module
 */

import type { ConnectionRecord } from "../platform/log/connection_log.ts";
import { hostOf } from "../proto/peer/host_port.ts";
import { clipped } from "../proto/peer/quoted.ts";
import { DialError } from "../proto/peer/dial_error.ts";
import { dialFailureStatus } from "./refusal.ts";
import { jsonText, type LineTime, TEXT_LENGTH_MAX } from "./dial_record.ts";

export const ACCESS_FORMATS = ["text", "json", "common"] as const;

/** See the module description. */
export type AccessFormat = (typeof ACCESS_FORMATS)[number];

/** The caller has gone before it was answered: nginx's number for it. */
const CALLER_GONE = 499;

/**
 * The line of a connection, its end included.
 *
 * Texts put together, and encoded at once: three times as fast here as bytes
 * that are put behind each other.
 *
 * @param endMs By the clock.
 */
export type AccessLine = (
  connection: ConnectionRecord,
  time: LineTime,
  endMs: number,
) => string;

export const ACCESS_LINES: Readonly<Record<AccessFormat, AccessLine>> = {
  json: fieldsLine({
    ...{ first: '{"time":"', second: '"', last: "}\n" },
    ...{ before: ',"', between: '":', text: json },
  }),
  text: fieldsLine({
    ...{ first: "", second: "", last: "\n" },
    ...{ before: " ", between: "=", text: plain },
  }),
  common: commonLine,
};

/** What a format puts around the time, and around each name and value. */
interface FieldStyle {
  readonly first: string;
  readonly second: string;
  readonly last: string;
  readonly before: string;
  readonly between: string;
  readonly text: (value: string) => string;
}

/** A line of names and values. */
function fieldsLine(
  { first, second, last, before, between, text }: FieldStyle,
): AccessLine {
  const label = (name: string) => `${before}${name}${between}`;
  const words = (name: string) => remembering(label(name), text);
  const field = {
    ...{ who: words("who"), from: words("from"), node: words("node") },
    ...{ forwardedTo: words("forwardedTo"), service: words("service") },
    ...{ protocol: words("protocol"), target: words("target") },
    ...{ kind: words("end"), reason: words("reason") },
  };
  const idLabel = label("id");
  const [status, toTarget, fromTarget, dial, duration] = [
    ...["status", "bytesToTarget", "bytesFromTarget", "dialMs", "durationMs"],
  ].map(label);
  return (connection, time, endMs) => {
    const { facts, bytesToTarget, bytesFromTarget, end } = connection;
    const { id, who, from, node, forwardedTo, service, target } = facts;
    return first + time.iso(endMs) + second +
      (id === undefined ? "" : idLabel + text(id)) +
      status + statusOf(connection) + field.who(who) + field.from(from) +
      field.node(node) + field.forwardedTo(forwardedTo) +
      field.service(service) + field.protocol(target?.protocol) +
      field.target(target?.address) + field.kind(end.kind) +
      field.reason(reasonOf(end)) + toTarget + bytesToTarget +
      fromTarget + bytesFromTarget + dial + dialMs(connection, endMs) +
      duration + durationMs(connection, endMs) + last;
  };
}

/**
 * A field, which often has the value that it had in the line before.
 *
 * @returns Writes it; nothing where there is no value.
 */
function remembering(
  label: string,
  text: (value: string) => string,
): (value: string | undefined) => string {
  let last: string | undefined;
  let written = "";
  return (value) => {
    if (value === last) return written;
    last = value;
    return written = value === undefined ? "" : label + text(value);
  };
}

function json(value: string): string {
  return jsonText(clipped(value, TEXT_LENGTH_MAX));
}

/** Characters that logfmt allows without quotes. */
const PLAIN_VALUE = /^[!#-<>-[\]-~]+$/;

function plain(value: string): string {
  return value.length <= TEXT_LENGTH_MAX && PLAIN_VALUE.test(value)
    ? value
    : json(value);
}

/**
 * `HOST - USER [DAY/Mon/YEAR:HH:MM:SS +0000] "CONNECT TARGET PROTOCOL" STATUS
 * BYTES-FROM-TARGET BYTES-TO-TARGET DURATION-MS NODE ID END`
 */
function commonLine(
  connection: ConnectionRecord,
  time: LineTime,
  endMs: number,
): string {
  const { facts, bytesToTarget, bytesFromTarget, end } = connection;
  const { id = "-", who, from, node, forwardedTo, service, target } = facts;
  time.look(endMs);
  const host = from === undefined ? "-" : token(hostOf(from));
  const asked = `${token(target?.address ?? service)} ${
    token(target?.protocol)
  }`;
  return `${host} - ${token(who)} [${time.second}] "CONNECT ${asked}" ` +
    `${statusOf(connection)} ${bytesFromTarget} ${bytesToTarget} ` +
    `${durationMs(connection, endMs)} ${token(node ?? forwardedTo)} ` +
    `${id} ${end.kind}\n`;
}

/** Visible ASCII, the rest as Apache writes it. */
function token(text: string | undefined): string {
  if (text === undefined || text === "") return "-";
  const short = clipped(text, TEXT_LENGTH_MAX);
  return PLAIN_TOKEN.test(short) ? short : short.replace(ODD, escaped);
}

const PLAIN_TOKEN = /^[!#-[\]-~]+$/;
const ODD = /[^!#-[\]-~]/gu;

function escaped(character: string): string {
  const bytes = new TextEncoder().encode(character);
  return [...bytes]
    .map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

/** A second as `[10/Oct/2000:13:55:36 +0000]` has it, in UTC. */
export function commonSecond(second: Date): string {
  const [day, clock] = second.toISOString().split("T") as [string, string];
  const [year, month, date] = day.split("-") as [string, string, string];
  return `${date}/${MONTHS[Number(month) - 1]}/${year}:${
    clock.slice(0, 8)
  } +0000`;
}

// deno-fmt-ignore: one year.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The status of the dial: a connection that was reset later had been made. */
function statusOf({ end }: ConnectionRecord): number {
  if (end.kind !== "failed") return 200;
  if (end.reason === "cancelled") return CALLER_GONE;
  return dialFailureStatus(new DialError(end.reason, end.message));
}

function reasonOf(end: ConnectionRecord["end"]): string | undefined {
  if (end.kind === "clean") return undefined;
  return end.kind === "failed" ? end.message : end.reason;
}

function dialMs(
  { startMs, openedMs }: ConnectionRecord,
  endMs: number,
): number {
  return rounded((openedMs ?? endMs) - startMs);
}

function durationMs({ startMs }: ConnectionRecord, endMs: number): number {
  return rounded(endMs - startMs);
}

/** Twelve days. */
const SMALL_BELOW_MS = 2 ** 30;

/** A caller's clock and ours may differ by a fraction. */
function rounded(ms: number): number {
  // What may have a fraction for the compiler becomes a text much slower.
  if (ms < SMALL_BELOW_MS) return ms > 0 ? (ms + 0.5) | 0 : 0;
  return Math.round(ms);
}

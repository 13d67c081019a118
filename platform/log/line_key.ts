/**
 * What a line of the log is about, where it names an address or a wait: the same
 * peer comes from another port each time, and waits are drawn by lot.
 *
 * @module
 */

/** `line` without the ports of its addresses and its times, as a key for the log. */
export function lineKey(line: string): string {
  return line.slice(0, LENGTH_MAX)
    .replaceAll(PORTS, "$1")
    .replaceAll(TIMES, "");
}

/** Limit on a key; later text does not distinguish lines. */
const LENGTH_MAX = 500;

const TIMES = /\b\d+(?:\.\d+)? m?s\b/g;

/** The part after an IPv4 address, or after an IPv6 address in brackets. */
const PORTS = /(\.\d{1,3}|\]):\d{1,5}(?!\d)/g;

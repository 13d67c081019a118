/**
 * What both ends agree on about services that agents announce, besides how they
 * travel: how many there may be, and what one is called.
 *
 * @module
 */

import { clipped } from "../peer/quoted.ts";
import type { AnnouncedService } from "./link_messages.ts";

/**
 * Ports of services that one agent may announce. A node serves a handful; ten
 * thousand nodes that all lied could fill no more than memory for 640,000.
 */
export const ANNOUNCED_SERVICES_MAX = 64;

/** Longest text of a field, as DNS has it for names. */
export const ANNOUNCED_TEXT_LENGTH_MAX = 253;

/** Longest name of one that is repeated to people. */
const SHOWN_LENGTH_MAX = 100;

/** For people: `default/web:80`, or `default/dns:53/udp`. */
export function announcedName(
  { namespace, name, port, protocol }: AnnouncedService,
): string {
  const key = `${namespace || "default"}/${name}:${port}`;
  const whole = protocol === "udp" ? `${key}/udp` : key;
  // A peer wrote it, and it stands in lines of the log.
  const plain = whole.replace(/[^\x21-\x7e]/g, "?");
  return clipped(plain, SHOWN_LENGTH_MAX);
}

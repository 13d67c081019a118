/**
 * How our two ends recognise each other on paths that Konnectivity's programs
 * use too: one metadata field, each way, that Go peers ignore.
 *
 * @module
 */

import { Metadata } from "../grpc/metadata.ts";

/** The metadata field; its value is a comma-separated list of capabilities. */
export const CAPABILITIES_FIELD = "tunnel-capabilities";

/**
 * What this build can do, in the words of SPEC.md.
 *
 * - `half-close`: END_STREAM from a caller and DATA_END from either end close
 *   one direction only.
 * - `datagram`: one DATA packet is one datagram when DIAL_REQ says `udp`, and
 *   an empty datagram differs from an empty packet.
 * - `early-data`: DATA with connectID 0 may follow DIAL_REQ at once.
 * - `reset-reason`: the reset field of CLOSE_REQ and CLOSE_RSP is read.
 */
export const CAPABILITIES = [
  "half-close",
  "datagram",
  "early-data",
  "reset-reason",
] as const;

/** One of {@linkcode CAPABILITIES}. */
export type Capability = typeof CAPABILITIES[number];

/**
 * Metadata that announces our capabilities.
 *
 * @param others Fields to be sent as well; left as they are.
 */
export function announceCapabilities(others?: Metadata): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of others ?? []) metadata.add(name, value);
  metadata.add(CAPABILITIES_FIELD, OUR_LIST);
  return metadata;
}

/** Whether the peer that sent `metadata` announced `capability`. */
export function hasCapability(
  metadata: Metadata,
  capability: Capability,
): boolean {
  // The list of this very build, as nearly always, needs no reading.
  if (metadata.text(CAPABILITIES_FIELD) === OUR_LIST) return true;
  return metadata.texts(CAPABILITIES_FIELD).some((list) =>
    list.split(",").some((word) => word.trim() === capability)
  );
}

const OUR_LIST = CAPABILITIES.join(",");

/** What {@linkcode announceCapabilities} gives without anything else; final. */
export const OUR_CAPABILITIES: Metadata = announceCapabilities().freeze();

/**
 * Endpoints and targets of the catalog, for tests, from as few words as need be.
 *
 * @module
 */

import {
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
} from "../../../services/catalog/model/model.ts";
import type { Target } from "../../../services/catalog/snapshot.ts";

/** A target at `host:port`. */
export function target(
  address: string,
  about: Partial<Omit<Endpoint, "address" | "ports">> = {},
): Target {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  const port = Number(address.slice(at + 1));
  const endpoint: Endpoint = {
    address: host,
    ports: [{ name: "", port }],
    state: "ready",
    weight: DEFAULT_WEIGHT,
    via: DIRECT,
    ...about,
  };
  return { address: host, port, endpoint };
}

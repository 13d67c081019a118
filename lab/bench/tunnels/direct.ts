/**
 * No tunnel: the target itself, the limit of what can be.
 *
 * @module
 */

import type { Site, Tunnel } from "./site.ts";

export function startDirect(site: Site): Promise<Tunnel> {
  return Promise.resolve({
    flags: [`-addr=${site.target}`],
    generator: "loadgen",
    route: "the target itself",
    pieces: [],
    stop: () => Promise.resolve(),
  });
}

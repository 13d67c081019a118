/**
 * A proxy address of its own for each endpoint behind a proxy, as far as there are
 * enough: grpc-go takes endpoints behind one proxy address for one endpoint.
 *
 * @module
 */

import { fnv1a } from "../../../proto/bytes/fnv1a.ts";
import { connectHost } from "../../../proto/xds/relay_fields.ts";
import type { ConnectProxy } from "./client_group.ts";

/** All addresses of a proxy; kept, since what is made of each is kept, too. */
const spread = new WeakMap<ConnectProxy, readonly ConnectProxy[]>();

/**
 * The address of `proxy` for each endpoint. An endpoint keeps its address when
 * others come or go, unless two endpoints wanted the same.
 *
 * @param endpoints Their virtual addresses; each once.
 */
export function ownProxies(
  endpoints: Iterable<string>,
  proxy: ConnectProxy,
): ReadonlyMap<string, ConnectProxy> {
  const all = addressesOf(proxy);
  const own = new Map<string, ConnectProxy>();
  const taken = new Set<number>();
  for (const endpoint of [...endpoints].sort()) {
    let at = fnv1a(endpoint) % all.length;
    // With more endpoints than addresses some have the same.
    if (taken.size < all.length) {
      while (taken.has(at)) at = (at + 1) % all.length;
    }
    taken.add(at);
    own.set(endpoint, all[at]!);
  }
  return own;
}

function addressesOf(proxy: ConnectProxy): readonly ConnectProxy[] {
  let all = spread.get(proxy);
  if (all === undefined) {
    const { port, more = 0 } = proxy;
    const others = Array.from(
      { length: more },
      (_, index): ConnectProxy => ({ host: connectHost(index + 1), port }),
    );
    spread.set(proxy, all = [proxy, ...others]);
  }
  return all;
}

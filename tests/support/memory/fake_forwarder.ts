/**
 * Other servers that answer what a test tells them to.
 *
 * @module
 */

import type { DialEvents, PendingDial } from "../../../proto/link/link.ts";
import type { DialError } from "../../../proto/peer/dial_error.ts";
import type { Peer, Peers } from "../../../server/peers/peers.ts";
import type { CallerDial, Forwarder } from "../../../server/routing/dialer.ts";
import type { DialWay } from "../../../server/routing/dial_way.ts";

/** A dial that a server was asked for. */
export interface ForwardedDial {
  readonly server: string;
  readonly request: CallerDial;
  readonly hasOthers: boolean;
  readonly events: DialEvents;
  readonly earlyData: string;
  cancelled: boolean;
}

/** Servers that are named `s2`, `s3` and so on, at ports of their number. */
export function fakePeers(
  names: readonly string[],
  more: Pick<Peer, "agentsAreKnown"> = {},
): Peers {
  const all = names.map((serverId) => ({
    serverId,
    address: `${serverId}.example:8091`,
    ...more,
  }));
  return { all, find: () => all };
}

/** See the module description. */
export class FakeForwarder implements Forwarder {
  readonly dials: ForwardedDial[] = [];
  /** Bytes that a dial under way takes early. */
  takes = 0;

  wayTo(peer: Peer, request: CallerDial, hasOthers: boolean): DialWay {
    return {
      leadsTo: {
        load: this.dials.filter(({ server }) => server === peer.serverId)
          .length,
        askedMs: undefined,
        isProven: true,
        checkLiveness: () => {},
        whenAlive: (then) => then(),
      },
      agentId: undefined,
      forwardedTo: peer.serverId,
      name: `server ${peer.serverId}`,
      dial: (events, { earlyData }) =>
        this.#dial({
          server: peer.serverId,
          ...{ request, hasOthers, events },
          earlyData: new TextDecoder().decode(earlyData),
          cancelled: false,
        }),
      named: (error: DialError) => error,
    };
  }

  #dial(dial: ForwardedDial): PendingDial {
    this.dials.push(dial);
    return {
      cancel: () => void (dial.cancelled = true),
      sendEarly: (bytes) => Math.min(bytes.length, this.takes),
    };
  }
}

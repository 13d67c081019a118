/**
 * A tunnel that remembers what it was asked for, with targets in memory.
 *
 * @module
 */

import type { TunnelDialError } from "../../../client/dial_error.ts";
import type {
  TunnelDial,
  TunnelDialer,
} from "../../../client/tunnel_dialer.ts";
import { nextTurn } from "../watch/event_loop.ts";
import { ConduitProbe } from "./conduit_probe.ts";
import { MemoryConduit } from "./memory_conduit.ts";

/** See the module description. */
export class FakeTunnel implements TunnelDialer {
  readonly dials: TunnelDial[] = [];
  /** What every dial gets instead of a target. */
  refusal: TunnelDialError | undefined;
  readonly #waiting: ((target: ConduitProbe) => void)[] = [];
  readonly #unclaimed: ConduitProbe[] = [];

  dial(dial: TunnelDial): Promise<MemoryConduit> {
    this.dials.push(dial);
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    const datagrams = dial.target.protocol === "udp";
    const [near, far] = MemoryConduit.pair({ datagrams });
    const target = new ConduitProbe(far);
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#unclaimed.push(target);
    else waiting(target);
    return Promise.resolve(near);
  }

  /** The next target that was dialed, once whoever dialed it listens to it. */
  async target(): Promise<ConduitProbe> {
    const target = this.#unclaimed.shift() ??
      await new Promise<ConduitProbe>((resolve) => this.#waiting.push(resolve));
    await nextTurn();
    return target;
  }

  close(): void {}
}

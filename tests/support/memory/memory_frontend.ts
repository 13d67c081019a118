/**
 * A gRPC frontend in memory: our callee, targets that a test connects it to,
 * and callers that say what they are told.
 *
 * @module
 */

import {
  CAPABILITIES_FIELD,
  PROXY_PATH,
} from "../../../proto/link/capabilities.ts";
import type { DialAnswer } from "../../../proto/link/dial_handler.ts";
import { proxyService } from "../../../proto/link/proxy_service.ts";
import type { Int64, Packet } from "../../../proto/packets/packet.ts";
import type { ConnectionOptions } from "../../../proto/streams/connection_events.ts";
import { CountingObserver } from "../rigs/carrier_rig.ts";
import { ConduitProbe, settled } from "./conduit_probe.ts";
import { ConnectionPair } from "./connection_pair.ts";
import { FakeTimers } from "./fake_timers.ts";
import { MemoryConduit } from "./memory_conduit.ts";
import { ScriptedCaller } from "../watch/packet_script.ts";

/** Beyond what a number can hold. */
export const RANDOM = 0x7ff0_e7e7_b7b1_baf2n;

const request = {
  type: "DIAL_REQ",
  address: "10.0.0.1:443",
  random: RANDOM,
} as const;

export const dialRequest: Packet = { ...request, protocol: "tcp" };
export const udpRequest: Packet = { ...request, protocol: "udp" };

export const closeRequest = (connectId: Int64): Packet => ({
  type: "CLOSE_REQ",
  connectId,
  reset: "",
});

/** See the module description. */
export class MemoryFrontend {
  readonly timers = new FakeTimers();
  readonly observer = new CountingObserver();
  readonly answers: DialAnswer[] = [];
  readonly pair: ConnectionPair;
  /** Dials that were given up. */
  cancelled = 0;

  constructor(client: Partial<ConnectionOptions> = {}) {
    this.pair = new ConnectionPair({
      clock: this.timers,
      client,
      methods: {
        [PROXY_PATH]: proxyService({
          timers: this.timers,
          observer: this.observer,
          onDial: (_target, answer) => {
            this.answers.push(answer);
            return { cancel: () => void this.cancelled++ };
          },
        }),
      },
    });
  }

  /** One that announces nothing. */
  goCaller(): ScriptedCaller {
    return new ScriptedCaller(this.pair.client, PROXY_PATH);
  }

  /** One that can half-close. */
  ourCaller(): ScriptedCaller {
    return new ScriptedCaller(this.pair.client, PROXY_PATH, {
      [CAPABILITIES_FIELD]: "half-close",
    });
  }

  /** Answers the newest dial with a target. */
  connect(datagrams = false): ConduitProbe {
    const [near, far] = MemoryConduit.pair({ datagrams });
    const target = new ConduitProbe(far);
    this.answers.at(-1)!.connected(near);
    return target;
  }

  /** A connected Go caller and its target. */
  async dialled(): Promise<{ caller: ScriptedCaller; target: ConduitProbe }> {
    const caller = this.goCaller();
    await caller.say(dialRequest);
    const target = this.connect();
    await settled();
    return { caller, target };
  }
}

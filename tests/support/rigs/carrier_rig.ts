/**
 * An agent's link over memory, for each carrier: what a server holds at one
 * end, targets that a test plays at the other.
 *
 * @module
 */

import {
  CAPABILITIES,
  CONNECT_PATH,
} from "../../../proto/link/capabilities.ts";
import type { DialHandler } from "../../../proto/link/dial_handler.ts";
import { LINK_VERSION } from "../../../proto/link/hello.ts";
import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";
import type { ConnectionId } from "../../../proto/peer/connection_id.ts";
import type { DialError, DialTarget } from "../../../proto/peer/dial_error.ts";
import type {
  AgentLink,
  LinkDialOptions,
  PacketObserver,
} from "../../../proto/link/link.ts";
import { PacketsAgentLink } from "../../../proto/link/packets_agent.ts";
import { agentService } from "../../../proto/link/packets_server.ts";
import { serveStreamsAgent } from "../../../proto/link/streams_agent.ts";
import { openStreamsServer } from "../../../proto/link/streams_server.ts";
import { ReceiveBudget } from "../../../proto/streams/receive_budget.ts";
import type { Conduit } from "../../../proto/transfer/conduit.ts";
import { ConduitProbe } from "../memory/conduit_probe.ts";
import { ConnectionPair } from "../memory/connection_pair.ts";
import { QUIET_CONNECTION } from "../memory/fake_link.ts";
import { FakeTimers } from "../memory/fake_timers.ts";
import { MemoryConduit } from "../memory/memory_conduit.ts";

/** A dial that arrived at the agent. */
export interface ArrivedDial {
  readonly target: DialTarget;
  readonly answer: Parameters<DialHandler>[1];
  /** What came with it. */
  readonly id: ConnectionId | undefined;
  isCancelled: boolean;
}

/** What counts events; see `PacketObserver`. */
export class CountingObserver implements PacketObserver {
  readonly received = new Map<string, number>();
  readonly sent = new Map<string, number>();
  stalled = 0;
  dropped = 0;
  /** Of those. */
  cut = 0;
  /** Conduits that hold up their link now. */
  holding = 0;
  /** Status codes of streams that failed. */
  readonly failures: number[] = [];

  packetReceived(type: string): void {
    this.received.set(type, (this.received.get(type) ?? 0) + 1);
  }

  packetSent(type: string): void {
    this.sent.set(type, (this.sent.get(type) ?? 0) + 1);
  }

  conduitStalled(): void {
    this.stalled++;
  }

  datagramDropped(): void {
    this.dropped++;
  }

  datagramCut(): void {
    this.cut++;
  }

  conduitHolds(change: 1 | -1): void {
    this.holding += change;
  }

  streamFailed(code: number): void {
    this.failures.push(code);
  }
}

/** One link, both ends. */
export class CarrierRig {
  /** The server's. */
  readonly budget: ReceiveBudget;
  readonly timers = new FakeTimers();
  readonly observer = new CountingObserver();
  /** As the server sees it. */
  link!: AgentLink;
  pair!: ConnectionPair;
  drain!: () => void;
  /** Why the server's link ended. */
  closedReason: string | undefined;
  /** Why the agent's link ended. */
  agentClosedReason: string | undefined;
  /** Dials that nobody has answered; `connect` answers its own. */
  readonly dials: ArrivedDial[] = [];
  #nextTarget: Conduit | undefined;

  readonly onDial: DialHandler = (target, answer, { id }) => {
    const next = this.#nextTarget;
    this.#nextTarget = undefined;
    if (next !== undefined) {
      answer.connected(next);
      return { cancel: () => {} };
    }
    const dial = { target, answer, id, isCancelled: false };
    this.dials.push(dial);
    return { cancel: () => void (dial.isCancelled = true) };
  };

  /** @param budgetBytes What may wait at the server. */
  constructor(budgetBytes?: number) {
    this.budget = new ReceiveBudget(budgetBytes);
  }

  /** A connected conduit: who asked for it, and its target. */
  async connect(
    protocol = "tcp",
    options: LinkDialOptions = {},
  ): Promise<{ caller: ConduitProbe; target: ConduitProbe }> {
    let caller!: ConduitProbe;
    const { target } = await this.connectUnattached(
      protocol,
      options,
      (conduit) => caller = new ConduitProbe(conduit),
    );
    return { caller, target };
  }

  /** The same, while nobody listens to the conduit but `attach`, if anybody. */
  async connectUnattached(
    protocol = "tcp",
    options: LinkDialOptions = {},
    attach: (conduit: Conduit) => void = () => {},
  ): Promise<{ conduit: Conduit; target: ConduitProbe }> {
    const [agentEnd, targetEnd] = MemoryConduit.pair({
      datagrams: protocol === "udp",
    });
    const target = new ConduitProbe(targetEnd);
    this.#nextTarget = agentEnd;
    const conduit = await new Promise<Conduit>((resolve, reject) => {
      this.link.dial({ protocol, address: "target:1" }, {
        onConnected(conduit) {
          attach(conduit);
          resolve(conduit);
        },
        onFailed: reject,
      }, options);
    });
    return { conduit, target };
  }

  /** Starts a dial that stays unanswered until the test answers it. */
  dial(
    options: LinkDialOptions = {},
  ): { outcome: Promise<DialError | "connected">; cancel(): void } {
    const { promise, resolve } = Promise.withResolvers<
      DialError | "connected"
    >();
    const pending = this.link.dial({ protocol: "tcp", address: "target:1" }, {
      onConnected(conduit) {
        new ConduitProbe(conduit);
        resolve("connected");
      },
      onFailed: resolve,
    }, options);
    return { outcome: promise, cancel: () => pending.cancel() };
  }
}

/** A link of the streams carrier. */
export async function streamsRig(budgetBytes?: number): Promise<CarrierRig> {
  const rig = new CarrierRig(budgetBytes);
  const { timers, observer } = rig;
  const { methods } = serveStreamsAgent({
    hello: {
      version: LINK_VERSION,
      software: "tunnel/test",
      agentId: "agent-1",
      identifiers: "host=Node1",
      token: "",
      capabilities: CAPABILITIES,
      linkIndex: 0,
      services: [],
      instanceId: "",
    },
    onDial: rig.onDial,
    onServerHello: (_hello, control) => void (rig.drain = control.drain),
    onFailed: (error) => void (rig.agentClosedReason = error.message),
    timers,
    observer,
  });
  rig.pair = new ConnectionPair({
    clock: timers,
    methods,
    client: { receiveBudget: rig.budget },
  });
  rig.link = await openStreamsServer(rig.pair.client, {
    hello: {
      version: LINK_VERSION,
      software: "tunnel/test",
      serverId: "server-1",
      serverCount: 1,
      capabilities: CAPABILITIES,
      instanceId: "",
    },
    timers,
    remoteAddress: "10.0.0.7:4711",
    identity: ANONYMOUS,
    observer,
    onClosed: (_link, reason) => void (rig.closedReason = reason),
  });
  return rig;
}

/** A link of the packets carrier. */
export async function packetsRig(budgetBytes?: number): Promise<CarrierRig> {
  const rig = new CarrierRig(budgetBytes);
  const { timers, observer } = rig;
  const opened = Promise.withResolvers<AgentLink>();
  rig.pair = new ConnectionPair({
    clock: timers,
    methods: {
      [CONNECT_PATH]: agentService({
        serverId: "server-1",
        serverCount: () => 1,
        remoteAddress: "10.0.0.7:4711",
        identity: ANONYMOUS,
        connection: QUIET_CONNECTION,
        randomness: counting(),
        timers,
        observer,
        onLink: opened.resolve,
        onLinkClosed: (_link, reason) => void (rig.closedReason = reason),
      }),
    },
    server: { receiveBudget: rig.budget },
  });
  const agent = new PacketsAgentLink(rig.pair.client, {
    agentId: "agent-1",
    identifiers: "host=Node1",
    authority: "server",
    onDial: rig.onDial,
    timers,
    observer,
    onServerInfo() {},
    onClosed: (error) => void (rig.agentClosedReason = error.message),
  });
  rig.drain = () => agent.drain();
  rig.link = await opened.promise;
  return rig;
}

/** Randomness that is none: 1, 2, 3 … and beyond 2^53 from the start. */
export function counting(): (bytes: Uint8Array) => void {
  let count = 0;
  return (bytes) => {
    bytes.fill(0x7f);
    bytes[7] = ++count * 2;
  };
}

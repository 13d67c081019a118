import { assertEquals, assertRejects } from "@std/assert";
import { TunnelDialError } from "../../../client/dial_error.ts";
import { deadPort } from "../../../tests/support/rigs/proxy_rig.ts";
import { target } from "../../../tests/support/peers/targets.ts";
import { FakeTunnel } from "../../../tests/support/memory/fake_tunnel.ts";
import type { Target } from "../../catalog/snapshot.ts";
import {
  AGENT_TIMEOUT_MS_MIN,
  type EndpointDial,
  type EndpointDialer,
  EndpointDialError,
  MachineDialer,
} from "./endpoint_dialer.ts";

const HOW = { protocol: "tcp", timeoutMs: 250, agentOnFailure: false } as const;

/** A promise in any case. */
const dialed = async (
  dialer: EndpointDialer,
  target: Target,
  how: EndpointDial,
) => await dialer.dial(target, how);

const behind = (agent?: { key: "uid" | "host" | "cidr"; value: string }) =>
  target("10.0.0.7:80", { via: { kind: "agent", ...(agent && { agent }) } });

Deno.test("an endpoint behind an agent is dialed through the tunnel, by that agent", async () => {
  const tunnel = new FakeTunnel();
  const dialer = new MachineDialer({ tunnel });
  await dialer.dial(behind(), HOW);
  await dialer.dial(behind({ key: "host", value: "n1" }), HOW);
  await dialer.dial(behind({ key: "uid", value: "42" }), HOW);
  await dialer.dial(behind({ key: "cidr", value: "10.0.0.0/8" }), {
    ...HOW,
    protocol: "udp",
    timeoutMs: 9_000,
  });
  assertEquals(tunnel.dials.map(({ node }) => node), [
    undefined,
    "n1",
    "uid=42",
    "cidr=10.0.0.0/8",
  ]);
  assertEquals(tunnel.dials[3]!.target, {
    protocol: "udp",
    address: "10.0.0.7:80",
  });
  assertEquals(tunnel.dials.map(({ timeoutMs }) => timeoutMs), [
    AGENT_TIMEOUT_MS_MIN,
    AGENT_TIMEOUT_MS_MIN,
    AGENT_TIMEOUT_MS_MIN,
    9_000,
  ]);
});

Deno.test("without a tunnel an endpoint behind an agent cannot be reached", async () => {
  const error = await assertRejects(
    () => dialed(new MachineDialer({}), behind(), HOW),
    EndpointDialError,
    "no tunnel server is known; give --server",
  );
  assertEquals(error.fault, "target");
});

Deno.test("a direct endpoint that refuses is dialed through the tunnel where that is allowed", async () => {
  const tunnel = new FakeTunnel();
  const dialer = new MachineDialer({ tunnel });
  const refusing = target(`127.0.0.1:${deadPort()}`);
  await assertRejects(
    () => dialed(dialer, refusing, HOW),
    EndpointDialError,
    "refused",
  );
  assertEquals(tunnel.dials, []);
  await dialer.dial(refusing, { ...HOW, agentOnFailure: true });
  assertEquals(tunnel.dials.length, 1);
  assertEquals(tunnel.dials[0]!.node, undefined);
  tunnel.refusal = new TunnelDialError("endpoint", "No agent available");
  await assertRejects(
    () => dialed(dialer, refusing, { ...HOW, agentOnFailure: true }),
    EndpointDialError,
    "connection refused; through the tunnel: No agent available",
  );
});

Deno.test("what the client says first goes along through the tunnel, and is not asked for otherwise", async () => {
  const tunnel = new FakeTunnel();
  const dialer = new MachineDialer({ tunnel });
  let asked = 0;
  let early = new TextEncoder().encode("GET /");
  const takeEarly = () => {
    asked++;
    return Promise.resolve(early);
  };
  const refusing = target(`127.0.0.1:${deadPort()}`);
  await assertRejects(() => dialed(dialer, refusing, { ...HOW, takeEarly }));
  assertEquals(asked, 0, "nothing is saved on the direct way");
  await dialer.dial(behind(), { ...HOW, takeEarly });
  await dialer.dial(refusing, { ...HOW, takeEarly, agentOnFailure: true });
  early = new Uint8Array();
  await dialer.dial(behind(), { ...HOW, takeEarly });
  assertEquals(
    tunnel.dials.map(({ earlyData }) => earlyData?.length),
    [5, 5, undefined],
  );
  const careful = new MachineDialer({ tunnel, earlyData: false });
  asked = 0;
  await careful.dial(behind(), { ...HOW, takeEarly });
  assertEquals(asked, 0, "it waits until the endpoint is connected");
});

Deno.test("a dial that is given up is nobody's failure", async () => {
  const tunnel = new FakeTunnel();
  tunnel.refusal = new TunnelDialError("context", "the caller gave up");
  const signal = AbortSignal.abort();
  const dialer = new MachineDialer({ tunnel });
  const how = { ...HOW, signal, agentOnFailure: true };
  const dials = [
    dialed(dialer, target(`127.0.0.1:${deadPort()}`), how),
    dialed(dialer, behind(), how),
  ];
  for (const dial of dials) {
    const error = await assertRejects(() => dial, EndpointDialError);
    assertEquals(error.fault, "cancelled");
  }
  assertEquals(tunnel.dials.length, 1, "nobody wants to go round any more");
});

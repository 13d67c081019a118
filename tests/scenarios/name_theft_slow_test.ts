/**
 * Agents that proved nothing about themselves, where they are let in all the
 * same: under no spelling do they get what belongs to a node that joined.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { parseRule } from "../../policy/rule.ts";
import { RuleSet } from "../../policy/rule_set.ts";
import { GrpcError, StatusCode } from "../../proto/grpc/status.ts";
import type { Identifiers } from "../../proto/peer/identifiers.ts";
import { IdentityNode } from "../support/rigs/identity_node.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";

const GRANTED = "host=DB.internal&uid=ABC&ipv4=10.9.0.2&ipv6=fd00::9" +
  "&cidr=10.1.0.0/16&default-route=true";

const EVERYTHING = { rule: parseRule("*:*:*"), label: "--deny *:*:*" };

/** What an anonymous agent says of itself, unread as yet, and as whom. */
const CLAIMS: readonly (readonly [
  identifiers: Partial<Identifiers>,
  agentId?: string,
])[] = [
  ...["gw", "GW", "gw.", "Gw.."].flatMap((name) => [
    [{}, name] as const,
    [{ host: [name] }] as const,
    [{ uid: [name] }] as const,
  ]),
  ...["db.internal", "db.INTERNAL.", "db.internal.."].map((name) =>
    [{ host: [name] }] as const
  ),
  ...["abc", "Abc", "ABC."].map((uid) => [{ uid: [uid] }] as const),
  ...[
    "10.9.0.2",
    "10.9.0.2.",
    "::ffff:10.9.0.2",
    "[::ffff:a09:2]",
    "10.9.2",
    "0xa.9.0.2",
    "168361986",
    "012.9.0.2",
    "FD00:0::9",
    "fd00::9%eth0",
    "[fd00::9]",
    "10.1.259",
  ].map((host) => [{ host: [host] }] as const),
  [{ ipv4: ["10.9.0.2"] }],
  [{ ipv4: ["10.1.3.4"] }],
  [{ ipv6: ["fd00::9"] }],
  [{ cidr: ["10.1.2.0/24"] }],
  [{ cidr: ["10.0.0.0/8"] }],
  [{ defaultRoute: true }],
  [{ ipv4: ["::ffff:10.9.0.2"] }],
  [{ ipv6: ["FD00:0::0009"] }],
  [{ cidr: ["10.1.7.7/16"] }],
  [{ cidr: ["10.1.0.0/016"] }],
];

Deno.test("an anonymous agent gets nothing of a node's by another spelling", async () => {
  await using rig = await IdentityRig.open({ allowAnonymous: true });
  await rig.joined("gw", { identifiers: GRANTED });
  await rig.tunnel.log.until(/any target but joined nodes$/);
  const { ca } = await rig.place();
  for (const [identifiers, agentId = "anonymous"] of CLAIMS) {
    const agent = await rig.tunnel.agent({
      agentId,
      identifiers,
      keyPair: "none",
      ca,
    });
    const { message } = await agent.log.until(
      /^linked to server|^Cannot admit/,
    );
    assert(
      message.startsWith("Cannot admit"),
      `${agentId} ${JSON.stringify(identifiers)}: ${message}`,
    );
    agent.running.stop("it was refused");
  }
  const free = { ipv4: ["10.3.0.1"], cidr: ["10.4.0.0/16"] };
  const anonymous = { keyPair: "none", ca } as const;
  await rig.tunnel.link({ ...anonymous, agentId: "free", identifiers: free });
});

Deno.test("a name where an address belongs is found by nobody", async () => {
  await using rig = await IdentityRig.open({ allowAnonymous: true });
  const gateway = await rig.joined("gw");
  await rig.link(gateway, { identifiers: { host: ["gw"] } });
  const { ca } = await rig.place();
  await rig.tunnel.link({
    agentId: "anonymous",
    identifiers: { ipv4: ["gw"], ipv6: ["gw"], cidr: ["gw"] },
    keyPair: "none",
    ca,
    dials: { rules: () => new RuleSet({ allow: [], deny: [EVERYTHING] }) },
  });
  for (let dial = 0; dial < 20; dial++) {
    const { caller } = await rig.tunnel.connect("grpc", { node: "gw" });
    caller.send("through the gateway");
  }
});

Deno.test("a node called like an address has no right to the address", async () => {
  await using rig = await IdentityRig.open();
  const gateway = await rig.joined("gw", { identifiers: "ipv4=10.9.0.2" });
  // As one that joined when that was possible still.
  const old = await rig.joined("old");
  const record = rig.nodes.read("old")!;
  const name = "10.9.0.2";
  await rig.state.transact((change) =>
    rig.nodes.write({ ...record, name }, change)
  );
  const { current } = await rig.authorities();
  const cert = await current.issue({
    commonName: `node:${name}`,
    publicKey: old.keys.publicKey,
    usage: "client",
    notAfter: new Date(Date.now() + 3600_000),
  });
  const keyPair = { ...await old.pair(), cert };
  for (const identifiers of [{ host: [name] }, { uid: [name] }]) {
    const config = await rig.agentConfig(old, {
      agentId: name,
      keyPair,
      identifiers,
    });
    const agent = await rig.tunnel.agent(config);
    await agent.log.until(/that name reads as an address/);
    agent.running.stop("it was refused");
  }
  // The name itself stays its own, and what it is granted.
  await rig.tunnel.link(await rig.agentConfig(old, { agentId: name, keyPair }));
  await rig.nodes.change(name, (record) => ({
    ...record,
    identifiers: `ipv4=${name}`,
  }));
  await rig.tunnel.link(
    await rig.agentConfig(old, {
      agentId: name,
      keyPair,
      identifiers: { host: [name], ipv4: [name] },
    }),
  );
  await rig.link(gateway, { identifiers: { ipv4: [name] } });
});

Deno.test("a granted name is free for whom it was granted to", async () => {
  await using rig = await IdentityRig.open();
  await rig.joined("gw", { identifiers: "host=db.internal" });
  const heir = await IdentityNode.make("db.internal");
  const place = await rig.place();
  const error = await assertRejects(
    async () => await heir.join(place, await rig.token()),
    GrpcError,
    "the node gw was granted host=db.internal",
  );
  assertEquals((error as GrpcError).code, StatusCode.PERMISSION_DENIED);
  // The refusal used nothing up, and grants are looked at when they are asked.
  await heir.join(place, await rig.token({ identifiers: "host=db.internal" }));
});

import { assert, assertEquals } from "@std/assert";
import { identifiers } from "../../tests/support/memory/fake_link.ts";
import {
  type Identifiers,
  NO_IDENTIFIERS,
} from "../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../proto/link/link.ts";
import { certified } from "../../tests/support/memory/memory_stream.ts";
import type { LinkDecision } from "../links/authorizer.ts";
import { bindingAuthorizer } from "./binding_authorizer.ts";
import { unprovenClaim } from "./claims.ts";
import { certificateFacts } from "../../platform/pki/certificate.ts";
import { generateKeyPair } from "../../platform/pki/key_pair.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../tests/support/memory/memory_store.ts";
import { createState } from "../state/open_state.ts";
import { RemoteStore } from "../../neighbours/store/remote_store.ts";
import { createAuthorities, loadAuthorities } from "./authorities.ts";
import { nodeAuthorizer } from "./node_authorizer.ts";
import { issueNodeCertificate } from "./leaf_certificates.ts";
import { NodeStore } from "./node_store.ts";

function claim(
  claimed: Partial<Identifiers>,
  granted: Partial<Identifiers> = {},
  agentId = "n",
): string | undefined {
  return unprovenClaim(
    { agentId, identifiers: identifiers(claimed) },
    { ids: ["n"], names: ["n"], granted: identifiers(granted) },
  );
}

Deno.test("a node may have its own name, and what was granted", () => {
  assertEquals(claim({ host: ["n"], uid: ["n"] }), undefined);
  assertEquals(
    claim(
      { host: ["db"], uid: ["u"], ipv4: ["10.0.0.1"], defaultRoute: true },
      { host: ["db"], uid: ["u"], ipv4: ["10.0.0.1"], defaultRoute: true },
    ),
    undefined,
  );
});

Deno.test("less than what was granted may be claimed, and not more", () => {
  const two = ["10.1.0.0/16", "fd00::/16"];
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [claimed: Partial<Identifiers>, unproven?: string, granted?: string[]])[] = [
    [{ ipv4: ["10.1.2.3"] }],
    [{ host: ["10.1.2.3"] }],
    [{ ipv6: ["fd00::1"] }],
    [{ cidr: ["10.1.128.0/17"] }],
    [{ cidr: ["10.1.0.0/16", "fd00:1::/32"] }],
    [{ ipv4: ["10.2.0.1"] },     "ipv4=10.2.0.1"],
    [{ cidr: ["10.0.0.0/15"] },  "cidr=10.0.0.0/15"],
    [{ cidr: ["10.2.0.0/15"] },  "cidr=10.2.0.0/15", ["10.2.0.0/16"]],
    [{ cidr: ["0.0.0.0/0"] },    "cidr=0.0.0.0/0"],
    // Nonsense matches nobody, and is not let through all the same.
    [{ cidr: ["10.1.0.0"] },     "cidr=10.1.0.0"],
    [{ ipv4: ["x"] },            "ipv4=x"],
  ];
  for (const [claimed, unproven, cidr = two] of cases) {
    const wanted = unproven && `identifier ${unproven}`;
    assertEquals(claim(claimed, { cidr }), wanted, JSON.stringify(claimed));
  }
});

Deno.test("claims that read alike are told apart, and a host gives no address", () => {
  const long = "/ ".repeat(200);
  assert(claim({ uid: [`${long}b`] }, { uid: [`${long}a`] }) !== undefined);
  const host = ["10.1.2.3"];
  assertEquals(claim({ host }, { host }), undefined);
  for (const own of [{ ipv4: host }, { cidr: ["10.1.2.3/32"] }]) {
    assert(claim(own, { host }) !== undefined);
  }
});

Deno.test("each claim that was not granted is named, safely for a log", () => {
  assertEquals(claim({}, {}, "m"), 'agent id "m"');
  assertEquals(claim({ host: ["n", "m"] }), "identifier host=m");
  assertEquals(claim({ uid: ["a\nb"] }), 'identifier uid="a\\nb"');
  assertEquals(claim({ defaultRoute: true }), "identifier default-route=true");
});

function decided(
  peer: Partial<LinkPeer>,
  names: string[],
  binding: "warn" | "enforce",
  againAs?: string,
) {
  const reported: string[] = [];
  const authorizer = bindingAuthorizer(binding, {
    mismatched: () => reported.push("counted"),
    warn: (message) => reported.push(message),
  });
  const candidate = {
    token: "",
    peer: {
      agentId: "node1",
      identifiers: identifiers(),
      identity: { ...certified("system:node:node1"), names },
      remoteAddress: "10.0.0.7:1",
      carrier: "streams" as const,
      software: "",
      ...peer,
    },
  };
  const { peer: asked } = candidate;
  const again = { ...asked, agentId: againAs ?? asked.agentId };
  authorizer(candidate);
  const decision = authorizer({ ...candidate, peer: again });
  return { reported, decision };
}

Deno.test("a foreign certificate proves its common name and its names", () => {
  const names = ["DNS:web.example", "IP Address:10.0.0.7"];
  for (
    const peer of [
      {},
      { agentId: "web.example" },
      { identifiers: identifiers({ ipv4: ["10.0.0.7"], host: ["node1"] }) },
    ]
  ) {
    const { reported, decision } = decided(peer, names, "enforce");
    assertEquals([reported, decision], [[], { admitted: true }]);
  }
});

Deno.test("an address that a foreign certificate is for proves it, and as an id", () => {
  const ip = ["IP Address:10.0.0.7"];
  // Clusters exist whose nodes are called by their addresses.
  const node = "system:node:10.0.0.7";
  // A DNS name that reads as an address is the proof of neither.
  const dns = ["DNS:10.0.0.7", "DNS:10.7"];
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [
    commonName: string, names: string[], agentId: string, claims: Partial<Identifiers>, isProven: boolean,
  ])[] = [
    ["n",   ip,           "10.0.0.7",  {},                                         true ],
    ["n",   ip,           "n",         { host: ["10.0.0.7"] },                     true ],
    ["n",   ip,           "10.0.0.8",  {},                                         false],
    [node,  [],           "10.0.0.7",  { host: ["10.0.0.7"], ipv4: ["10.0.0.7"] }, true ],
    [node,  [],           "10.0.0.7",  { ipv4: ["10.0.0.8"] },                     false],
    ["n",   dns,          "10.0.0.7",  {},                                         false],
    ["n",   dns,          "n",         { host: ["10.0.0.7"] },                     false],
    ["N1",  ["DNS:Web."], "N1",        { host: ["web"] },                          true ],
  ];
  for (const [commonName, names, agentId, claims, isProven] of cases) {
    const identity = { ...certified(commonName), names };
    const peer = { agentId, identifiers: identifiers(claims), identity };
    const { decision } = decided(peer, names, "enforce");
    const { admitted } = decision as LinkDecision;
    assertEquals(admitted, isProven, `${commonName} ${names} as ${agentId}`);
  }
});

Deno.test("agents with random ids and one certificate are warned of once", () => {
  const id = "80fe1bd2-27a1-4c0c-9f0a-3d1f1c5c9e11";
  const warnings = (againAs: string) =>
    decided({ agentId: id }, [], "warn", againAs).reported
      .filter((line) => line !== "counted").length;
  assertEquals(warnings("11fe1bd2-27a1-4c0c-9f0a-3d1f1c5c9e12"), 1);
  assertEquals(warnings("node9"), 2);
});

// A node may be faster at a second server than the word of it.

async function rig() {
  const place = new MemoryPlace();
  const engine = await RemoteStore.open({
    store: new MemoryStore(place),
    timers: systemTimers,
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  await createState(engine, createAuthorities);
  const authorities = await loadAuthorities(engine);
  const { publicKey } = await generateKeyPair();
  const { pem } = await issueNodeCertificate(
    authorities,
    "gw",
    publicKey,
    Date.now(),
    3600_000,
  );
  const { x509, publicKeySha256 } = certificateFacts(pem);
  const identity = {
    kind: "certificate",
    commonName: "node:gw",
    certificate: { der: new Uint8Array(x509.raw), publicKeySha256 },
  };
  const subject = /CN=(.*)/.exec(x509.subject)![1]!;
  const peer = {
    identity: { ...identity, commonName: subject },
    agentId: "gw",
    identifiers: NO_IDENTIFIERS,
  } as unknown as LinkPeer;
  const nodes = new NodeStore(engine);
  const authorizer = nodeAuthorizer({
    nodes,
    authorities: () => authorities,
    trustsOthers: false,
    log: { error: () => {} },
    grants: () => NO_IDENTIFIERS,
    admitted: new WeakMap(),
  });
  const decide = () => authorizer({ peer, token: "" });
  /** Another server writes it, and nobody has told this one. */
  const write = (state: string) =>
    place.records.set("nodes/gw.json", {
      version: `${++place.version}`,
      text: JSON.stringify({
        ...{ name: "gw", state, publicKeySha256, identifiers: "" },
        ...{ joinedAt: "2030", tokenId: "t", joinedFrom: "10.0.0.1" },
      }),
    });
  return { place, engine, decide, write };
}

Deno.test("a node that joined or was approved elsewhere just now is asked about", async () => {
  const { place, engine, decide, write } = await rig();
  const unknown = await decide();
  assert(unknown?.admitted === false, JSON.stringify(unknown));
  write("pending");
  const pending = await decide();
  assert(pending?.admitted === false, JSON.stringify(pending));
  write("approved");
  assertEquals(await decide(), { admitted: true });
  // Who is known is not asked about: the answer comes at once.
  const known = decide();
  assert(!(known instanceof Promise));
  assertEquals(known, { admitted: true });
  place.leave();
  assertEquals(decide(), { admitted: true });
  await engine.close();
});

Deno.test("who is unknown while the state is away is refused, and not forgotten for it", async () => {
  const { place, engine, decide, write } = await rig();
  write("approved");
  place.leave();
  const refused = await decide();
  assert(refused?.admitted === false, JSON.stringify(refused));
  place.comeBack();
  assertEquals(await decide(), { admitted: true });
  await engine.close();
});

import { assertEquals, assertMatch } from "@std/assert";
import { ANNOUNCED_SERVICES_MAX } from "../../../proto/link/control_messages.ts";
import type { AnnouncedService } from "../../../proto/link/link_messages.ts";
import type { Identifiers } from "../../../proto/peer/identifiers.ts";
import type { LinkPeer } from "../../../proto/link/link.ts";
import { certifiedCaller } from "../../../tests/support/memory/fake_caller.ts";
import {
  FakeLink,
  identifiers,
} from "../../../tests/support/memory/fake_link.ts";
import {
  type AnnouncementRules,
  authorizeAnnouncement,
} from "./announcement.ts";

type Rules = Partial<
  AnnouncementRules["policy"] & Pick<AnnouncementRules, "letsAnonymous">
>;

const WEB: AnnouncedService = {
  name: "web",
  namespace: "",
  port: 80,
  protocol: "",
  appProtocol: "",
  host: "127.0.0.1",
  targetPort: 8080,
};

/** An agent with a certificate for `node:edge-1`. */
function peer(given: Partial<Identifiers> = {}, agentId = "edge-1"): LinkPeer {
  const { identity } = certifiedCaller("node:edge-1");
  return { ...new FakeLink(agentId, given).peer, identity };
}

function authorize(
  services: readonly AnnouncedService[],
  who: LinkPeer = peer(),
  { letsAnonymous = false, ...policy }: Rules = {},
) {
  return authorizeAnnouncement(who, services, {
    letsAnonymous,
    policy: {
      grantsOf: () => identifiers(),
      mayOffer: () => true,
      ...policy,
    },
  });
}

/** Why one service is not taken; empty when it is. */
function reason(
  change: Partial<AnnouncedService>,
  who?: LinkPeer,
  rules?: Rules,
): string {
  return authorize([{ ...WEB, ...change }], who, rules).refused[0]?.reason ??
    "";
}

Deno.test("what is announced is taken whole, and what is not said is as usual", () => {
  const dns = { ...WEB, name: "dns", namespace: "infra", protocol: "udp" };
  const { offers, refused } = authorize([
    WEB,
    { ...dns, appProtocol: "dns" },
    WEB,
  ]);
  assertEquals(refused, []);
  assertEquals(
    offers.map((offer) => Object.values(offer).join(" ")),
    [
      "default/web default web 80 tcp  127.0.0.1 8080",
      "infra/dns infra dns 80 udp dns 127.0.0.1 8080",
    ],
  );
});

Deno.test("an address is the agent's own, or is not taken", () => {
  const own = {
    host: ["edge-1.lan", "10.9.9.9"],
    ipv4: ["192.0.2.7"],
    ipv6: ["fd00::7"],
    cidr: ["10.1.0.0/16"],
  };
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [host: string, isOwn: boolean])[] = [
    ["127.0.0.1",          true ], ["127.9.9.9",        true ],
    ["::1",                true ], ["localhost",        true ],
    ["0.0.0.0",            true ], ["::ffff:127.0.0.1", true ],
    ["192.0.2.7",          true ], ["192.0.2.8",        false],
    ["FD00:0::7",          true ], ["fd00::8",          false],
    ["10.1.2.3",           true ], ["10.2.2.3",         false],
    ["10.9.9.9",           true ], ["Edge-1.LAN.",      true ],
    ["edge-2.lan",         false], ["169.254.169.254",  false],
    ["metadata.internal",  false], ["127.1",            false],
    ["",                   false], ["a b",              false],
  ];
  for (const [host, isOwn] of cases) {
    assertEquals(reason({ host }, peer(own)) === "", isOwn, host);
  }
  assertMatch(
    reason({ host: "192.0.2.8" }),
    /^"192\.0\.2\.8" is not the agent's own: 127\.0\.0\.1, or an address/,
  );
});

Deno.test("a policy grants addresses to the node that the certificate names", () => {
  const grantsOf = (node: string) =>
    identifiers(node === "edge-1" ? { cidr: ["10.0.0.0/8"] } : {});
  assertEquals(reason({ host: "10.7.7.7" }, peer(), { grantsOf }), "");
  // What it calls itself proves nothing.
  const { peer: unproven } = new FakeLink("edge-1");
  assertMatch(
    reason({ host: "10.7.7.7" }, unproven, { grantsOf }),
    /is not the agent's own/,
  );
});

Deno.test("a name that is another node's is refused with who may say otherwise", () => {
  const asked: string[] = [];
  const mayOffer = (node: string, service: string) => {
    asked.push(`${node} ${service}`);
    return false;
  };
  assertEquals(
    reason({ namespace: "shop" }, peer(), { mayOffer }),
    "no rule of the server lets edge-1 announce shop/web; add it to services " +
      "of its nodes entry in the policy file",
  );
  assertEquals(asked, ["edge-1 shop/web"]);
});

Deno.test("what cannot be a service is refused alone", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [change: Partial<AnnouncedService>, says: RegExp])[] = [
    [{ protocol: "sctp" },               /^its protocol is "sctp", tcp or udp/],
    [{ name: "w/b" },                    /"w\/b" is no name of a service/],
    [{ name: "" },                       /"" is no name of a service/],
    [{ name: "web.shop" },               /has a dot, and could be taken for/],
    [{ namespace: "n.s" },               /"n\.s" is no namespace/],
    [{ port: 0 },                        /port "" is 0, 1 to 65535/],
    [{ targetPort: 65_536 },             /target's port is 65536/],
    [{ appProtocol: "a b" },             /"a b" is no application protocol/],
    [{ appProtocol: "x".repeat(64) },    /is no application protocol/],
    [{ host: "x".repeat(10_000) },       /is no address/],
  ];
  for (const [change, says] of cases) {
    assertMatch(reason(change), says);
    assertEquals(authorize([{ ...WEB, ...change }, WEB]).offers.length, 1);
  }
});

Deno.test("so many are taken, and one line stands for the rest", () => {
  const many = (count: number) =>
    Array.from({ length: count }, (_, port) => ({ ...WEB, port: port + 1 }));
  assertEquals(authorize(many(ANNOUNCED_SERVICES_MAX)).refused, []);
  const { offers, refused } = authorize(many(ANNOUNCED_SERVICES_MAX + 1_000));
  assertEquals(offers.length, ANNOUNCED_SERVICES_MAX);
  assertEquals(refused.length, 1);
  assertEquals(refused[0]!.service, "default/web:65");
  assertMatch(refused[0]!.reason, /^only 64 services of one agent are taken/);
});

Deno.test("an agent that cannot be named, or is nobody, announces nothing", () => {
  for (const agentId of ["edge 1", "é", "x".repeat(254)]) {
    assertMatch(reason({}, peer({}, agentId)), /set --agent-id/);
  }
  const nobody = new FakeLink("edge-1").peer;
  assertEquals(reason({}, nobody), "");
  assertMatch(
    reason({}, nobody, { letsAnonymous: true }),
    /^the agent showed no certificate/,
  );
  assertEquals(reason({}, peer(), { letsAnonymous: true }), "");
});

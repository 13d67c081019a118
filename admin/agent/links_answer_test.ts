import { assertEquals, assertMatch } from "@std/assert";
import type { LinksView, ServerLink } from "../../agent/links/agent_links.ts";
import { linkInfos, linkWarnings } from "./agent_routes.ts";

const NOW_MS = 100_000;

function link(more: Partial<ServerLink> = {}): ServerLink {
  return {
    serverId: "hub",
    serverCount: 1,
    carrier: "streams",
    drain: () => {},
    close: () => {},
    view: () => ({
      address: "10.0.0.1:8091",
      software: "tunnel/0.1.0",
      lastHeardMs: NOW_MS - 4_000,
      roundTripMs: 23.456,
      conduits: 2,
      bulkConduits: 1,
    }),
    ...more,
  };
}

const HELD = {
  by: "tunnel.example:8091",
  sinceMs: NOW_MS - 60_000,
  isDraining: false,
  isDoubted: false,
};

const TROUBLE = {
  address: "tunnel.example:9091",
  isConnecting: false,
  nextMs: NOW_MS + 1_500,
  sinceMs: NOW_MS - 60_000,
  failures: 12,
  problem: "connection refused",
};

Deno.test("a link says where it leads, and how it does", () => {
  const [info] = linkInfos({
    held: [{ ...HELD, link: link() }],
    failing: [],
  }, NOW_MS);
  const { since: _, ...rest } = JSON.parse(JSON.stringify(info));
  assertEquals(rest, {
    id: "1",
    peer: "hub",
    carrier: "streams",
    address: "10.0.0.1:8091",
    software: "tunnel/0.1.0",
    state: "linked",
    roundTripMs: 23.46,
    silentMs: 4_000,
    conduits: 2,
    bulkConduits: 1,
  });
});

Deno.test("a link that knows nothing of itself is at the address that made it", () => {
  const { view: _, ...bare } = link();
  const [info] = linkInfos({
    held: [{ ...HELD, link: bare, isDoubted: true }],
    failing: [],
  }, NOW_MS);
  assertEquals(info!.address, "tunnel.example:8091");
  assertEquals(info!.state, "still");
  assertMatch(info!.problem!, /owes a sign of life/);
});

Deno.test("an address that leads nowhere says why, and when it is tried again", () => {
  const [info] = linkInfos({ held: [], failing: [TROUBLE] }, NOW_MS);
  assertEquals(info!.state, "waiting");
  assertEquals(info!.problem, "connection refused");
  assertEquals(info!.nextAttemptMs, 1_500);
  assertEquals(info!.failures, 12);
});

Deno.test("an outage is an error at once without any link, else a warning in a while", () => {
  const severities = (view: LinksView) =>
    linkWarnings(view, NOW_MS).map(({ severity, code }) => [severity, code]);
  const held = [{ ...HELD, link: link() }];
  assertEquals(severities({ held: [], failing: [TROUBLE] }), [
    ["error", "TUN402"],
  ]);
  assertEquals(severities({ held, failing: [TROUBLE] }), [
    ["warning", "TUN401"],
  ]);
  const young = { ...TROUBLE, sinceMs: NOW_MS - 9_000 };
  assertEquals(severities({ held: [], failing: [young] }).length, 1);
  assertEquals(severities({ held, failing: [young] }), []);
  const first = { ...TROUBLE, failures: 0 };
  assertEquals(severities({ held: [], failing: [first] }).length, 1);
  assertEquals(severities({ held, failing: [first] }), []);
});

Deno.test("what a server says of itself is not repeated at any length", () => {
  const problem = "x".repeat(100_000);
  const view = { held: [], failing: [{ ...TROUBLE, problem }] };
  assertEquals(linkInfos(view, NOW_MS)[0]!.problem!.length, 1_000);
  assertEquals(linkWarnings(view, NOW_MS)[0]!.message.length < 1_100, true);
});

/**
 * What rules and policies refuse, through both frontends and over both carriers,
 * and what the audit logs of both ends say about it.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { parseRule } from "../../policy/rule.ts";
import { RuleSet } from "../../policy/rule_set.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { metricAt, Tunnel } from "../support/rigs/tunnel_harness.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];
const PROTOCOLS: readonly FrontendProtocol[] = ["grpc", "http-connect"];

function rules(allow: string, deny: string): RuleSet {
  const labelled = (flag: string, text: string) => ({
    rule: parseRule(text),
    label: `${flag} ${text}`,
  });
  return new RuleSet({
    allow: [labelled("--allow", allow)],
    deny: [labelled("--deny", deny)],
  });
}

async function refusal(dial: Promise<unknown>): Promise<TunnelDialError> {
  const outcome = await dial.then(() => "connected", (error) => error);
  assert(outcome instanceof TunnelDialError, String(outcome));
  return outcome;
}

/** What a CONNECT client reads first, from a socket of its own. */
async function connectAnswer(
  path: string,
  address: string,
  headers = "",
): Promise<string> {
  using conn = await Deno.connect({ transport: "unix", path });
  const head = `CONNECT ${address} HTTP/1.1\r\n${headers}\r\n`;
  await conn.write(new TextEncoder().encode(head));
  const into = new Uint8Array(1_000);
  const count = await conn.read(into);
  return new TextDecoder().decode(into.subarray(0, count ?? 0));
}

/** The lines of an audit log whose process has ended. */
async function linesOf(path: string): Promise<Record<string, unknown>[]> {
  const text = await Deno.readTextFile(path);
  return text.trim().split("\n").map((line) => JSON.parse(line));
}

/** Without what differs from run to run. */
function steady(
  { time: _time, durationMs: _ms, from: _from, id: _id, ...rest }: Record<
    string,
    unknown
  >,
): Record<string, unknown> {
  return rest;
}

for (const carrier of CARRIERS) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`${carrier}, ${protocol}: an agent's rule refuses in words that reach the caller`, async () => {
      await using tunnel = await Tunnel.open();
      const { running } = await tunnel.link({
        carrier,
        dials: { rules: () => rules("tcp:127.0.0.1:*", "tcp:*:22") },
      });
      const target = { protocol: "tcp", address: "127.0.0.1:22" };
      const error = await refusal(tunnel.dial(protocol, { target }));
      assertEquals(
        error.message,
        "Cannot dial tcp 127.0.0.1:22: refused by the agent's rule " +
          "--deny tcp:*:22",
      );
      assertEquals(error.tunnelCode, "TUN603");
      const other = { protocol: "tcp", address: "192.0.2.1:80" };
      const none = await refusal(tunnel.dial(protocol, { target: other }));
      assertMatch(
        none.message,
        /192\.0\.2\.1:80: refused, no rule of the agent/,
      );
      assertMatch(
        await connectAnswer(tunnel.socketPath, "127.0.0.1:22"),
        /^HTTP\/1\.1 403 Cannot dial tcp 127\.0\.0\.1:22: refused by the agent/,
      );
      assertEquals(
        await metricAt(
          running.addresses.health,
          "tunnel_agent_refused_dials_total",
        ),
        3,
      );
      // What is allowed is not disturbed.
      const pair = await tunnel.connect(protocol);
      pair.caller.send("fine");
      await pair.target.received(4);
    });
  }

  Deno.test(`${carrier}: a policy authorizes callers, nodes and targets before an agent is asked`, async () => {
    await using files = await Tunnel.open();
    const policyFile = await policyOf(files, [
      { socket: "*/f.sock", nodes: ["edge-*"], allow: ["tcp:127.0.0.1:*"] },
      { socket: "*", nodes: ["edge-*"], deny: ["tcp:*:22"] },
    ]);
    await using tunnel = await Tunnel.open({
      server: { authorization: { policyFile } },
    });
    await tunnel.link({
      carrier,
      agentId: "edge-1",
      identifiers: { host: ["edge-1"] },
    });
    await tunnel.link({
      carrier,
      agentId: "core-1",
      identifiers: { host: ["core-1"] },
    });
    for (const protocol of PROTOCOLS) {
      const dial = (address: string, node: string) =>
        tunnel.dial(protocol, { target: { protocol: "tcp", address }, node });
      const pair = await tunnel.connect(protocol, { node: "edge-1" });
      pair.caller.send("fine");
      await pair.target.received(4);
      const denied = await refusal(dial("127.0.0.1:22", "edge-1"));
      assertEquals(
        denied.message,
        "Cannot dial tcp 127.0.0.1:22: refused by the server's rule " +
          "frontends[1].deny[0] tcp:*:22",
      );
      const elsewhere = await refusal(dial("127.0.0.1:80", "core-1"));
      assertMatch(elsewhere.message, /is about node core-1/);
      const nowhere = await refusal(dial("127.0.0.1:80", "core-2"));
      assertMatch(nowhere.message, /is about node core-2/);
      const absent = await refusal(dial("127.0.0.1:80", "edge-2"));
      assertMatch(absent.message, /no agent serves host=edge-2/);
    }
    assertMatch(
      await connectAnswer(
        tunnel.socketPath,
        "127.0.0.1:80",
        "tunnel-node: core-1\r\n",
      ),
      /^HTTP\/1\.1 403 Cannot dial /,
    );
    assertEquals(await tunnel.metric("tunnel_server_refused_dials_total"), 7);
    const packets = "konnectivity_network_proxy_server_stream_packets_total" +
      '{segment="to_agent",packet_type="DIAL_REQ"}';
    assertEquals(await tunnel.metric(packets), 2, "only what was allowed");
  });
}

/** Writes a policy file into the folder of `tunnel`. */
async function policyOf(
  tunnel: Tunnel,
  frontends: readonly unknown[],
): Promise<string> {
  const path = `${tunnel.socketPath}.policy.json`;
  await Deno.writeTextFile(path, JSON.stringify({ frontends }));
  return path;
}

for (const protocol of PROTOCOLS) {
  Deno.test(`${protocol}: callers with a certificate are known by what it says`, async () => {
    await using files = await Tunnel.open();
    const policyFile = await policyOf(files, [
      { commonName: "node-client", allow: ["tcp:127.0.0.1:*"] },
    ]);
    await using tunnel = await Tunnel.open({
      frontend: "tcp",
      server: { authorization: { policyFile } },
    });
    await tunnel.link();
    const { address } = tunnel.target;
    const target = { protocol: "tcp", address };
    const error = await refusal(tunnel.dial(protocol, { target }));
    assertMatch(error.message, /no frontends entry is about CN=/);
    const name = /CN=([^)]+)/.exec(error.message)![1]!;
    await policyOf(files, [{ commonName: name, allow: ["tcp:127.0.0.1:*"] }]);
    tunnel.server.reload();
    await tunnel.log.until(/^policy: reloaded/);
    const pair = await tunnel.connect(protocol);
    pair.caller.send("fine");
    await pair.target.received(4);
    // A file that cannot be used changes nothing.
    await Deno.writeTextFile(policyFile, "{");
    tunnel.server.reload();
    await tunnel.log.until(/is not JSON.*; the earlier content stays in use$/);
    const again = await tunnel.connect(protocol);
    again.caller.send("fine");
    await again.target.received(4);
  });
}

/** A connection, and two that are refused: by the agent, and by the server. */
async function auditedDials(
  carrier: typeof CARRIERS[number],
  protocol: typeof PROTOCOLS[number],
  folder: string,
) {
  const file = (name: string) => ({
    path: `${folder}/${name}.log`,
    bytesMax: 1_000_000,
    filesMax: 2,
  });
  const policyFile = `${folder}/policy.json`;
  const entry = { socket: "*", allow: ["tcp:127.0.0.1:*", "tcp:n.test:1"] };
  await Deno.writeTextFile(
    policyFile,
    JSON.stringify({ frontends: [entry] }),
  );
  let address = "";
  let socket = "";
  {
    await using tunnel = await Tunnel.open({
      server: { authorization: { policyFile, audit: file("server") } },
    });
    const { running } = await tunnel.link({
      carrier,
      audit: file("agent"),
      dials: { rules: () => rules("tcp:*:*", "tcp:*:22") },
    });
    socket = tunnel.socketPath;
    ({ address } = tunnel.target);
    const pair = await tunnel.connect(protocol);
    pair.caller.send("a secret of the caller");
    await pair.target.received(22);
    pair.target.send("and one");
    await pair.caller.received(7);
    pair.caller.finish();
    pair.target.finish();
    await Promise.all([pair.caller.closed, pair.target.closed]);
    const dial = (address: string) =>
      tunnel.dial(protocol, { target: { protocol: "tcp", address } });
    await refusal(dial("127.0.0.1:22"));
    await refusal(dial("10.0.0.1:80"));
    running.stop("enough");
    await running.finished;
  }
  return {
    socket,
    address,
    server: await linesOf(file("server").path),
    agent: await linesOf(file("agent").path),
  };
}

/** Lines of one dial after the other; a clean end has moved these bytes. */
function linesOfDials(
  who: Readonly<Record<string, unknown>>,
  ...lines: readonly (readonly [dial: number, target: string, more: object])[]
) {
  return lines.map(([dial, target, more]) => ({
    event: "decision" in more ? "dial" : "end",
    ...{ dial, ...who, protocol: "tcp", node: "agent-1", target, ...more },
  }));
}

const MOVED = { end: "clean", bytesToTarget: 22, bytesFromTarget: 7 };

function serverLines(socket: string, address: string) {
  const who = { socket, pid: Deno.pid, uid: Deno.uid() };
  const reason = "Cannot dial tcp 127.0.0.1:22: refused by the agent's " +
    "rule --deny tcp:*:22";
  const allowed = {
    decision: "allowed",
    rule: "frontends[0].allow[0] tcp:127.0.0.1:*",
  };
  const failed = { end: "failed", reason, bytesToTarget: 0 };
  return linesOfDials(
    { who },
    [1, address, allowed],
    [1, address, MOVED],
    [2, "127.0.0.1:22", allowed],
    [2, "127.0.0.1:22", { ...failed, bytesFromTarget: 0 }],
    [3, "10.0.0.1:80", { decision: "refused", rule: "" }],
  );
}

function agentLines(address: string) {
  return linesOfDials(
    {},
    [1, address, { decision: "allowed", rule: "--allow tcp:*:*" }],
    [1, address, MOVED],
    [2, "127.0.0.1:22", { decision: "refused", rule: "--deny tcp:*:22" }],
  );
}

for (const carrier of CARRIERS) {
  for (const protocol of PROTOCOLS) {
    Deno.test(`${carrier}, ${protocol}: both audit logs tell who was let where, and how it ended`, async () => {
      const folder = await Deno.makeTempDir({ prefix: "audit-" });
      const { socket, address, server, agent } = await auditedDials(
        carrier,
        protocol,
        folder,
      );
      assertEquals(server.map(steady), serverLines(socket, address));
      for (const { time, from, durationMs, event } of server) {
        assertMatch(String(time), /^\d{4}-\d\d-\d\dT.*Z$/);
        assertEquals(from, "unix");
        assertEquals(
          typeof durationMs,
          event === "end" ? "number" : "undefined",
        );
      }
      assertEquals(agent.map(steady), agentLines(address));
      const ids = (lines: typeof server) => lines.map(({ id }) => id);
      assertMatch(`${ids(server)[0]}`, /^[0-9a-f]{16}$/);
      // What was refused before an agent was asked is in one of them.
      for (const id of ids(agent)) assert(ids(server).includes(id));
      const all = JSON.stringify([server, agent]);
      assert(!all.includes("secret"), "nothing that a connection carried");
      await Deno.remove(folder, { recursive: true });
    });
  }
}

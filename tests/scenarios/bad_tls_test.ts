/**
 * Peers that speak the wrong thing on a port, or show the wrong certificate: a
 * clear line on each side, counted, and nothing left behind.
 *
 * @module
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { TunnelDialError } from "../../client/dial_error.ts";
import { openDialer } from "../../client/tunnel_dialer.ts";
import type { CertificatePair } from "../support/certificates/throwaway_ca.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { readToEnd, writeAll } from "../support/peers/sockets.ts";
import type { FrontendMode } from "../../server/options.ts";
import { isOpensslUsed } from "../../net/tls/tls_in_use.ts";
import { portOf, Tunnel } from "../support/rigs/tunnel_harness.ts";

const REFUSED_AGENTS = "tunnel_server_refused_agents_total";
const REFUSED_CALLERS = "tunnel_server_refused_callers_total";
const NOT_HTTP2 = new TextEncoder().encode("\x00\x01 what is this\r\n\r\n");
const PLAIN_REQUEST = new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n");

/** What an agent with the wrong certificate receives, and what the server says. */
const AGENT_CERTIFICATES: readonly {
  readonly name: string;
  readonly keyPair: (
    all: Awaited<ReturnType<typeof certificates>>,
  ) => CertificatePair | "none";
  readonly server: RegExp;
  readonly agent: RegExp;
}[] = [
  {
    name: "no certificate",
    keyPair: () => "none",
    server: /Cannot admit this agent: it showed no certificate/,
    agent: /Cannot admit this agent: it showed no certificate.*--agent-cert/,
  },
  {
    name: "a certificate of another CA",
    keyPair: ({ otherClient }) => otherClient,
    server: /Cannot accept TLS from .*(CA|trusted).*node1/,
    agent: /our certificate|may not accept this agent's certificate/,
  },
  {
    name: "an expired certificate",
    keyPair: ({ expiredClient }) => expiredClient,
    server: /Cannot accept TLS from .*expired.*node1/,
    agent: /our certificate|may not accept this agent's certificate/,
  },
  {
    name: "a certificate for servers only",
    keyPair: ({ serverOnly }) => serverOnly,
    server: /Cannot accept TLS from .*not for clients/,
    agent: /our certificate|may not accept this agent's certificate/,
  },
];

for (const carrier of ["streams", "packets"] as const) {
  for (const wrong of AGENT_CERTIFICATES) {
    Deno.test(`${carrier}: an agent with ${wrong.name} is refused in words`, async () => {
      await using tunnel = await Tunnel.open();
      const keyPair = wrong.keyPair(await certificates());
      const agent = await tunnel.agent({ carrier, keyPair });
      const [seen, received] = await Promise.all([
        tunnel.log.until(wrong.server),
        agent.log.until(/trying again/),
      ]);
      assertMatch(received.message, wrong.agent);
      // Another engine hears no reason.
      if (received.message.startsWith("Cannot connect")) {
        assertEquals(received.fields["code"], "TUN206");
      }
      assert(!seen.message.includes("\n") && !received.message.includes("\n"));
      agent.running.stop("seen enough");
      const lines = tunnel.log.matching(/Cannot/).length;
      assertEquals(await tunnel.metric(REFUSED_AGENTS), lines);
      assertEquals(tunnel.log.matching(/^agent linked$/), []);
      // The port still serves whoever may.
      await tunnel.link({ agentId: "good", carrier });
    });
  }

  Deno.test(`${carrier}: an agent refuses a server of another CA, in words`, async () => {
    await using tunnel = await Tunnel.open();
    const { otherCa } = await certificates();
    const agent = await tunnel.agent({ carrier, ca: otherCa });
    const { message } = await agent.log.until(/trying again/);
    assertMatch(message, /the server's certificate was not signed by a CA/);
    await tunnel.log.until(
      /Cannot accept TLS from 127\.0\.0\.1:[1-9]\d*: it does not trust our certificate/,
    );
  });
}

for (const [name, bytes] of Object.entries({ PLAIN_REQUEST, NOT_HTTP2 })) {
  Deno.test(`plain bytes (${name}) to the agent port are named and counted`, async () => {
    await using tunnel = await Tunnel.open();
    using conn = await Deno.connect({
      hostname: "127.0.0.1",
      port: tunnel.agentPort,
    });
    await writeAll(conn, bytes);
    await tunnel.log.until(/Cannot accept TLS from .*does not speak TLS/);
    await readToEnd(conn).catch(() => {});
    assertEquals(await tunnel.metric(REFUSED_AGENTS), 1);
  });
}

Deno.test("what is TLS but no HTTP/2 ends on the agent port, and nobody else does", async () => {
  await using tunnel = await Tunnel.linked("streams");
  const { ca, client } = await certificates();
  for (const alpnProtocols of [["h2"], ["tunnel/1"]]) {
    using conn = await Deno.connectTls({
      hostname: "127.0.0.1",
      port: tunnel.agentPort,
      caCerts: [ca],
      ...client,
      alpnProtocols,
    });
    await writeAll(conn, NOT_HTTP2);
    await readToEnd(conn).catch(() => {});
  }
  const pair = await tunnel.connect("grpc");
  pair.caller.send("fine");
  await pair.target.received(4);
});

Deno.test("an agent that finds no TLS where its server should be says so", async () => {
  await using tunnel = await Tunnel.open();
  const serverPort = portOf(tunnel.server.addresses.health);
  const agent = await tunnel.agent({ serverPort });
  const { message } = await agent.log.until(/trying again/);
  assertMatch(message, /does not speak TLS on this port/);
});

Deno.test("TLS to a plain frontend is named, and counted", async () => {
  await using tunnel = await Tunnel.open();
  const path = tunnel.socketPath;
  using conn = await Deno.connect({ transport: "unix", path });
  // The first bytes of a ClientHello.
  await writeAll(conn, Uint8Array.of(0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3));
  assertEquals((await readToEnd(conn)).length, 0);
  await tunnel.log.until(/Cannot serve TLS here: .*connect without TLS/);
  assertEquals(await tunnel.metric(REFUSED_CALLERS), 1);
});

Deno.test("bytes of no protocol are answered in plain words", async () => {
  const wanted = {
    "auto": /Cannot accept the connection preface: saw .*, wanted HTTP\/2/,
    "grpc": /Cannot accept the connection preface: saw .*, wanted HTTP\/2/,
    "http-connect": /^HTTP\/1\.1 400 .*neither HTTP\/1\.1 nor HTTP\/2/,
  } as const;
  for (const [mode, message] of Object.entries(wanted)) {
    await using tunnel = await Tunnel.open({ mode: mode as FrontendMode });
    const path = tunnel.socketPath;
    using conn = await Deno.connect({ transport: "unix", path });
    await writeAll(conn, NOT_HTTP2);
    const answer = new TextDecoder().decode(await readToEnd(conn));
    assertMatch(answer, message);
    assertEquals(await tunnel.metric(REFUSED_CALLERS), 1, mode);
    assertEquals(tunnel.log.matching(/^unix: Cannot /).length, 1, mode);
  }
});

Deno.test("CONNECT that makes no sense, or is not served, is answered and said", async () => {
  const wanted = {
    "auto": ["CONNECT node HTTP/1.1", /there is no port/],
    "grpc": ["CONNECT node:80 HTTP/1.1", /--mode=grpc/],
    "http-connect": ["PRI * HTTP/2.0\r\n\r\nSM", /--mode=http-connect/],
  } as const;
  for (const [mode, [head, sentence]] of Object.entries(wanted)) {
    await using tunnel = await Tunnel.open({ mode: mode as FrontendMode });
    const path = tunnel.socketPath;
    using conn = await Deno.connect({ transport: "unix", path });
    await writeAll(conn, new TextEncoder().encode(`${head}\r\n\r\n`));
    const answer = new TextDecoder().decode(await readToEnd(conn));
    assertMatch(answer, /^HTTP\/1\.1 400 [^]*\r\n\r\n.{20,}\n$/);
    await tunnel.log.until(sentence);
  }
});

Deno.test("plain bytes to a TLS frontend are named, and counted", async () => {
  await using tunnel = await Tunnel.open({ frontend: "tcp" });
  const port = portOf(tunnel.server.addresses.frontend);
  using conn = await Deno.connect({ hostname: "127.0.0.1", port });
  await writeAll(conn, PLAIN_REQUEST);
  await tunnel.log.until(/Cannot accept TLS from .*does not speak TLS/);
  await readToEnd(conn).catch(() => {});
  assertEquals(await tunnel.metric(REFUSED_CALLERS), 1);
});

Deno.test("a caller of another CA learns that its certificate was refused", async () => {
  await using files = await Tunnel.open();
  const { frontend } = await files.serverOptions({ frontend: "tcp" });
  await using tunnel = await Tunnel.open({ server: { frontend } });
  const { ca, otherClient } = await certificates();
  const tls = {
    caFile: await tunnel.file(ca),
    certFile: await tunnel.file(otherClient.cert),
    keyFile: await tunnel.file(otherClient.key),
  };
  const port = portOf(tunnel.server.addresses.frontend);
  const dialer = openDialer({
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "tcp", host: "127.0.0.1", port, tls },
  });
  const target = { protocol: "tcp", address: tunnel.target.address };
  const error = await assertRejects(
    () => dialer.dial({ target }),
    TunnelDialError,
  );
  // Another engine hears no reason.
  const code = isOpensslUsed() ? "TUN206" : "TUN403";
  assertEquals([error.reason, error.tunnelCode], ["tunnelclosed", code]);
  dialer.close();
});

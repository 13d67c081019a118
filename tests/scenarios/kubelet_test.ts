/**
 * The kubelet front end from a caller's TLS to a kubelet's, through a server, a
 * link and an agent.
 *
 * @module
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import type { Carrier } from "../../proto/link/link.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { KubeletRig } from "../support/rigs/kubelet_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

const CARRIERS: readonly Carrier[] = ["streams", "packets"];

for (const carrier of CARRIERS) {
  Deno.test(`${carrier}: a request reaches the node in its Host, under our certificate`, async () => {
    await using rig = await KubeletRig.open({ carrier });
    const answer = await rig.ask(
      "GET /pods?x=1 HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer x\r\n" +
        "X-Tunnel-Proxy-Host: edge-1:10250\r\nKeep-Alive: 5\r\nTE: trailers\r\n" +
        "Connection: keep-alive, accept\r\nAccept: a\r\n\r\n",
    );
    assertEquals(
      answer,
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n" +
        "Connection: close\r\n\r\npods\n",
    );
    assertEquals(rig.kubelet.requests, [{
      method: "GET",
      target: "/pods?x=1",
      lines: [
        `Host: 127.0.0.1:${rig.kubelet.port}`,
        "Authorization: Bearer x",
        "Connection: close",
      ],
      commonName: "tunnel-kubelet-client",
    }]);
    const counted = "tunnel_server_kubelet_requests_total" +
      '{kind="pods",status="2xx"}';
    await eventually(
      "it is counted",
      async () => await rig.tunnel.metric(counted) === 1,
    );
  });

  Deno.test(`${carrier}: a followed log comes line by line, and ends with its reader`, async () => {
    await using rig = await KubeletRig.open({ carrier });
    const caller = await rig.caller();
    await caller.say(
      "GET /containerLogs/default/web/main?follow=true HTTP/1.1\r\n" +
        `Host: ${rig.host}\r\n\r\n`,
    );
    await caller.receives(/the first line\n\r\n$/);
    await rig.kubelet.followedBy(1);
    await rig.kubelet.log("another one");
    assertEquals(
      await caller.receives(/\r\n$/),
      "c\r\nanother one\n\r\n",
    );
    const inFlight = "tunnel_server_kubelet_requests_in_flight" +
      '{kind="containerLogs"}';
    assertEquals(await rig.tunnel.metric(inFlight), 1);
    caller.socket.close();
    await rig.kubelet.followedBy(0);
    await eventually(
      "nothing is in flight",
      async () => await rig.tunnel.metric(inFlight) === 0,
    );
  });

  Deno.test(`${carrier}: a body is followed to its end, and what stands behind it goes nowhere`, async () => {
    await using rig = await KubeletRig.open({ carrier });
    const smuggled = "GET /run/secret HTTP/1.1\r\nHost: HOST\r\n\r\n";
    const whole = await rig.ask(
      `POST /echo HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello` +
        smuggled,
    );
    assertMatch(whole, /\r\n\r\nhello$/);
    const chunks = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    const chunked = await rig.ask(
      "POST /echo HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n" +
        chunks + smuggled,
    );
    assert(chunked.endsWith(`\r\n\r\n${chunks}`), chunked);
    assertEquals(rig.kubelet.requests.length, 2);
  });

  Deno.test(`${carrier}: after a change of protocol bytes pass both ways, half-closes too`, async () => {
    await using rig = await KubeletRig.open({ carrier });
    const caller = await rig.caller();
    await caller.say(
      `POST /attach/default/web/main HTTP/1.1\r\nHost: ${rig.host}\r\n` +
        "Content-Length: 0\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n" +
        "early",
    );
    const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n" +
      "Upgrade: SPDY/3.1\r\n\r\n";
    let received = await caller.receives(/early$/);
    assertEquals(received, `${head}early`);
    const much = "x".repeat(300_000);
    const saying = caller.say(much).then(() => caller.socket.closeWrite());
    received = await caller.rest();
    await saying;
    assertEquals(received.length, much.length);
  });
}

Deno.test("without a certificate of its own the port shows what agents are shown", async () => {
  await using rig = await KubeletRig.open({ without: ["keyPair"] });
  const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 200 /);
});

Deno.test("a kubelet's certificate may bear the node's address instead of its name", async () => {
  await using rig = await KubeletRig.open();
  await rig.tunnel.link({ agentId: "box", identifiers: { host: ["box"] } });
  const answer = await rig.ask(
    "GET /metrics HTTP/1.1\r\nHost: x:1\r\nX-Tunnel-Proxy-Host: box\r\n" +
      `X-Tunnel-Proxy-Dest: 10.1.2.3:${rig.kubelet.port}\r\n\r\n`,
  );
  assertMatch(answer, /^HTTP\/1\.1 200 /);
});

for (const hostname of ["::", "0.0.0.0"]) {
  Deno.test(`the address that a caller came to names the node, bound to ${hostname}`, async () => {
    await using rig = await KubeletRig.open({
      kubelet: { address: { hostname, port: 0 } },
    });
    await rig.tunnel.link({
      agentId: "n7",
      identifiers: { ipv4: ["127.0.7.1"] },
    });
    const caller = await rig.caller(undefined, undefined, "127.0.7.1");
    await caller.say(
      "POST /portForward/web/nginx-0 HTTP/1.1\r\nHost: 127.0.0.1:6443\r\n" +
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
    );
    // The agent is told to dial that address at our port, which is us again:
    // no kubelet, but the right node was asked.
    assertMatch(await caller.rest(), /^HTTP.* kubelet of node 127\.0\.7\.1 \(/);
  });
}

Deno.test("who cannot be reached is named, with the reason, and when it was seen last", async () => {
  await using rig = await KubeletRig.open();
  const ask = (node: string) =>
    rig.ask(
      `GET /pods HTTP/1.1\r\nHost: HOST\r\nX-Tunnel-Proxy-Host: ${node}\r\n\r\n`,
    );
  assertMatch(
    await ask("edge-9"),
    /^HTTP\/1\.1 502 .*the kubelet of node edge-9 \(127.*never seen/,
  );
  rig.tunnel.agents[0]!.running.stop("going home");
  await rig.tunnel.log.until(/^agent gone/);
  assertMatch(
    await ask("edge-1"),
    /^HTTP\/1\.1 502 .*no agent is connected \(last seen \d+ s ago/,
  );
});

Deno.test("a port that nobody listens on is 502, with the agent's words", async () => {
  await using rig = await KubeletRig.open({ kubelet: { localhostPorts: [1] } });
  const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: edge-1:1\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 502 .*connection refused/);
});

Deno.test("a kubelet whose certificate is of another CA or another node is not spoken to", async () => {
  const { otherCa } = await certificates();
  const folder = await Deno.makeTempDir();
  const kubeletCaFile = `${folder}/other.crt`;
  await Deno.writeTextFile(kubeletCaFile, otherCa);
  {
    await using rig = await KubeletRig.open({ kubelet: { kubeletCaFile } });
    const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assertMatch(answer, /^HTTP\/1\.1 502 .*not signed by a CA that is trusted/);
  }
  await Deno.remove(folder, { recursive: true });
  await using rig = await KubeletRig.open();
  await rig.tunnel.link({
    agentId: "edge-2",
    identifiers: { host: ["edge-2"] },
  });
  const answer = await rig.ask(
    `GET /pods HTTP/1.1\r\nHost: edge-2:${rig.kubelet.port}\r\n\r\n`,
  );
  assertMatch(answer, /^HTTP\/1\.1 502 .*is for another name.*edge-2/);
  assertEquals(rig.kubelet.requests, []);
});

Deno.test("without verification any kubelet is spoken to, and the log says what that means", async () => {
  await using rig = await KubeletRig.open({ without: ["kubeletCaFile"] });
  await rig.tunnel.log.until(/kubelets' certificates are not verified/);
  const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 200 /);
});

Deno.test("a kubelet that wants a certificate and sees none is 502, in words", async () => {
  await using rig = await KubeletRig.open({ without: ["clientKeyPair"] });
  const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n");
  assertMatch(answer, /^HTTP\/1\.1 502 .*does it accept our certificate/);
});

Deno.test("callers without a good certificate do not get in", async () => {
  await using rig = await KubeletRig.open();
  const { otherClient } = await certificates();
  const refused = async () => {
    const caller = await rig.caller(otherClient);
    await caller.say(`GET /pods HTTP/1.1\r\nHost: ${rig.host}\r\n\r\n`);
    return await caller.rest();
  };
  await assertRejects(refused);
  await assertRejects(async () => {
    const caller = await rig.caller({ cert: "", key: "" });
    await caller.say(`GET /pods HTTP/1.1\r\nHost: ${rig.host}\r\n\r\n`);
    return await caller.rest();
  });
  await eventually(
    "both are counted",
    async () =>
      await rig.tunnel.metric("tunnel_server_refused_callers_total") === 2,
  );
  assertEquals(rig.kubelet.requests, []);
});

Deno.test("a node is no caller, though its certificate is of the callers' CA", async () => {
  const folder = await Deno.makeTempDir();
  const ca = await ThrowawayCa.create("one CA for all");
  const callerCaFile = `${folder}/ca.crt`;
  await Deno.writeTextFile(callerCaFile, ca.cert);
  await using rig = await KubeletRig.open({ kubelet: { callerCaFile } });
  for (const group of ["system:nodes", "tunnel:agents", "system:masters"]) {
    const pair = await ca.issue({
      commonName: "somebody",
      organizations: [group],
      usage: "client",
    });
    const caller = await rig.caller(pair);
    await caller.say(`GET /pods HTTP/1.1\r\nHost: ${rig.host}\r\n\r\n`);
    const answer = await caller.rest();
    if (group === "system:masters") assertMatch(answer, /^HTTP\/1\.1 200 /);
    else assertMatch(answer, /^HTTP\/1\.1 403 .*certificate is a node's/);
  }
  assertEquals(rig.kubelet.requests.length, 1);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("resets after a change of protocol pass in both directions", async () => {
  await using rig = await KubeletRig.open();
  const open = async (path: string) => {
    const caller = await rig.caller();
    await caller.say(
      `GET ${path} HTTP/1.1\r\nHost: ${rig.host}\r\n` +
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
    );
    await caller.receives(/\r\n\r\n$/);
    return caller;
  };
  const one = await open("/attach/reset");
  await one.say("now");
  await assertRejects(() => one.rest());
  const other = await open("/attach/echo");
  await other.say("x");
  await other.receives(/x/);
  other.socket.reset();
  await eventually(
    "the kubelet sees it",
    () => rig.kubelet.failures.length === 1,
  );
});

Deno.test("the policy authorizes callers by their certificates, and the audit log names them", async () => {
  const folder = await Deno.makeTempDir();
  const policyFile = `${folder}/policy.json`;
  const path = `${folder}/audit.log`;
  const frontends = [{
    commonName: "node1",
    nodes: ["edge-2"],
    allow: ["*:*:*"],
  }];
  await Deno.writeTextFile(policyFile, JSON.stringify({ frontends }));
  {
    await using rig = await KubeletRig.open({
      server: {
        authorization: {
          policyFile,
          audit: { path, bytesMax: 1_000_000, filesMax: 2 },
        },
      },
    });
    const answer = await rig.ask("GET /pods HTTP/1.1\r\nHost: HOST\r\n\r\n");
    assertMatch(answer, /^HTTP\/1\.1 403 .*is about node edge-1/);
    assertEquals(rig.kubelet.requests, []);
  }
  const [line] = (await Deno.readTextFile(path)).split("\n");
  const { who, decision } = JSON.parse(line!);
  assertEquals([who.commonName, decision], ["node1", "refused"]);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("stopping the server ends what runs on the kubelet port", async () => {
  const rig = await KubeletRig.open();
  const follower = await rig.caller();
  await follower.say(
    "GET /containerLogs/a/b/c?follow=true HTTP/1.1\r\n" +
      `Host: ${rig.host}\r\n\r\n`,
  );
  await rig.kubelet.followedBy(1);
  const silent = await rig.caller();
  rig.tunnel.server.stop("enough");
  await rig.tunnel.server.finished;
  await assertRejects(() => follower.rest());
  // Whoever had asked for nothing yet is not waited for either.
  assertEquals(await silent.rest().catch(() => ""), "");
  await rig.kubelet.followedBy(0);
  await rig[Symbol.asyncDispose]();
});

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { certificates } from "../support/certificates/certificates.ts";
import {
  eventually,
  metricAt,
  Tunnel,
} from "../support/rigs/tunnel_harness.ts";

// Certificates and authorities change under a tunnel that is in use: what
// stands goes on, what is new is authorized by the new files.

Deno.test("another authority counts for the next agent, and conduits go on", async () => {
  const all = await certificates();
  await using files = await Tunnel.open();
  const caFile = await files.file(all.ca);
  const certFile = await files.file(all.server.cert);
  const keyFile = await files.file(all.server.key);
  const { frontend } = await files.serverOptions({ frontend: "tcp" });
  assert(frontend.listen.kind === "tcp");
  await using tunnel = await Tunnel.open({
    serverAgents: { caFile, keyPair: { certFile, keyFile } },
    server: { frontend },
    frontend: "tcp",
  });
  await tunnel.link();
  const pairs = [
    await tunnel.connect("grpc"),
    await tunnel.connect("http-connect"),
  ];
  await Deno.writeTextFile(caFile, all.otherCa);
  // A comment makes the bundle another one.
  await Deno.writeTextFile(frontend.listen.caFile!, `${all.ca}# again\n`);
  tunnel.server.reload();
  for (const port of ["agent-port", "frontend"]) {
    await tunnel.log.until(new RegExp(`^${port}: certificates reloaded`));
  }
  const refused = await tunnel.agent({ agentId: "agent-2" });
  await refused.log.until(/our certificate|may not accept this agent/);
  assertEquals(tunnel.log.matching(/^agent linked$/).length, 1);
  await tunnel.link({ agentId: "agent-3", keyPair: all.otherClient });
  for (const { caller, target } of [...pairs, await tunnel.connect("grpc")]) {
    caller.send("still here");
    await target.received(10);
    assertEquals([caller.end, target.end], [undefined, undefined]);
  }
});

Deno.test("an agent shows its new certificate on its next link", async () => {
  const all = await certificates();
  await using files = await Tunnel.open();
  const caFile = await files.file(all.ca);
  await using tunnel = await Tunnel.open({ serverAgents: { caFile } });
  const options = await tunnel.agentOptions({
    serverPort: tunnel.newLine().port,
  });
  const { certFile, keyFile } = options.server.keyPair!;
  const agent = tunnel.startAgent(options);
  await tunnel.log.until(/^agent linked$/);
  for (const file of [caFile, certFile, keyFile]) {
    const text = file === caFile
      ? all.otherCa
      : all.otherClient[file === certFile ? "cert" : "key"];
    await Deno.writeTextFile(file, text);
  }
  tunnel.server.reload();
  agent.running.reload();
  await agent.log.until(/^server-link: certificates reloaded/);
  const again = tunnel.log.next(/^agent linked$/);
  tunnel.cut();
  await again;
});

Deno.test("a bad file keeps the old one, and readiness stays and says so", async () => {
  const all = await certificates();
  await using files = await Tunnel.open();
  const certFile = await files.file(all.server.cert);
  const keyFile = await files.file(all.server.key);
  await using tunnel = await Tunnel.open({
    serverAgents: { keyPair: { certFile, keyFile } },
  });
  await tunnel.link();
  const { health } = tunnel.server.addresses;
  const ready = async () => {
    const response = await fetch(`http://${health}/readyz?verbose`);
    return { status: response.status, text: await response.text() };
  };
  const note = "[!]agent-port: the new file cannot be used";
  assert(!(await ready()).text.includes("[!]"));
  const series =
    'tunnel_server_certificate_expiry_timestamp_seconds{kind="agent-port",' +
    'role="leaf",subject="tunnel-server"}';
  assert(await metricAt(health, series) > Date.now() / 1000);
  await Deno.writeTextFile(keyFile, all.client.key);
  tunnel.server.reload();
  await tunnel.log.until(/does not belong to the first.*stays in use$/);
  const stale = await ready();
  assertEquals(stale.status, 200);
  assertStringIncludes(stale.text, note);
  const failures = 'tunnel_server_reload_failures_total{kind="agent-port"}';
  assertEquals(await metricAt(health, failures), 1);
  await tunnel.link({ agentId: "agent-2" });
  await Deno.writeTextFile(keyFile, all.server.key);
  // Nobody asks: the file is watched.
  await eventually("good again", async () => {
    return !(await ready()).text.includes("[!]");
  });
});

/**
 * Servers and agents that cannot start: which file or address, what is wrong
 * with it, what was wanted; and nothing stays open.
 *
 * @module
 */

import { showServer } from "../../admin/server/show_server.ts";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { startServer } from "../../server/server.ts";
import { certificates } from "../support/certificates/certificates.ts";
import { ProbeTarget } from "../support/peers/probe_target.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { portOf, Tunnel } from "../support/rigs/tunnel_harness.ts";

/** The sentence with which a server refuses to start. */
async function refusal(
  tunnel: Tunnel,
  agents: Parameters<typeof Tunnel.open>[0],
): Promise<string> {
  const options = await tunnel.serverOptions(agents);
  const listen = {
    kind: "unix",
    path: `${tunnel.socketPath}2`,
    deleteExisting: true,
  } as const;
  const frontend = { ...options.frontend, listen, ...agents?.server?.frontend };
  const error = await assertRejects(
    () => startServer({ ...options, frontend }, new RecordedLog(), showServer),
    Error,
  );
  // Nobody listens on what was opened before the problem was found.
  await assertRejects(() =>
    Deno.connect({ transport: "unix", path: listen.path })
  );
  return error.message;
}

Deno.test("certificate files that are no good are named, with what is wrong", async (t) => {
  await using tunnel = await Tunnel.open();
  const { server, client, ca } = await certificates();
  const cert = await tunnel.file(server.cert);
  const key = await tunnel.file(server.key);
  const missing = "/nowhere/at-all.pem";
  const text = await tunnel.file("this is no PEM\n");
  const otherKey = await tunnel.file(client.key);
  const caFile = await tunnel.file(ca);
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly [what: string, certFile: string, keyFile: string, caFile: string, wanted: RegExp][] = [
    ["missing certificate", missing, key,      caFile,  /^Cannot read .*\/nowhere\/at-all\.pem: /],
    ["missing key",         cert,    missing,  caFile,  /^Cannot read .*\/nowhere\/at-all\.pem: /],
    ["missing CA",          cert,    key,      missing, /^Cannot read .*\/nowhere\/at-all\.pem: /],
    ["no certificate in it", text,   key,      caFile,  /^Cannot use certificate .*\.pem: it holds /],
    ["no key in it",        cert,    text,     caFile,  /^Cannot use key .*\.pem: it holds /],
    ["no CA in it",         cert,    key,      text,    /^Cannot use CA bundle .*\.pem: it holds /],
    ["key of another",      cert,    otherKey, caFile,  /^Cannot use key .*\.pem: it does not belong to /],
    ["a folder",            "/tmp",  key,      caFile,  /^Cannot read .*\/tmp: /],
  ];
  for (const [what, certFile, keyFile, caFile, wanted] of cases) {
    await t.step(what, async () => {
      const keyPair = { certFile, keyFile };
      const message = await refusal(tunnel, {
        serverAgents: { keyPair, caFile },
      });
      assertMatch(message, wanted);
      assertEquals(message.split("\n").length, 1);
    });
  }
});

Deno.test("a port that is in use is named", async () => {
  await using tunnel = await Tunnel.open();
  await using busy = new ProbeTarget();
  const address = { hostname: "127.0.0.1", port: portOf(busy.address) };
  const wanted = new RegExp(
    `^Cannot listen on ${busy.address}: something listens there already`,
  );
  for (const which of ["health", "admin"] as const) {
    const server = { [which]: address };
    assertMatch(await refusal(tunnel, { server }), wanted);
  }
  assertMatch(await refusal(tunnel, { serverAgents: { address } }), wanted);
});

Deno.test("a file that is no socket is left alone, but for Konnectivity's --uds-name", async () => {
  await using tunnel = await Tunnel.open();
  const options = await tunnel.serverOptions();
  const path = await tunnel.file("not a socket");
  const frontendAt = (deleteExisting: true | "files") => {
    const listen = { kind: "unix", path, deleteExisting } as const;
    return { ...options.frontend, listen };
  };
  assertMatch(
    await refusal(tunnel, { server: { frontend: frontendAt(true) } }),
    /^Cannot listen on .*: a file that is no socket has that name/,
  );
  assertEquals(await Deno.readTextFile(path), "not a socket");
  // As there, it goes.
  const log = new RecordedLog();
  const drop = await startServer(
    { ...options, frontend: frontendAt("files") },
    log,
    showServer,
  );
  (await Deno.connect({ transport: "unix", path })).close();
  assertEquals(log.matching(/^removed the file /).length, 1);
  drop.stop("seen enough");
  await drop.finished;
});

/**
 * A program of a node that is no agent follows the node's identity: what others
 * put on disk, what the server says, and what a handshake shows to be wrong.
 *
 * @module
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { FollowedIdentity } from "../../agent/identity/followed_identity.ts";
import { tlsUpstream } from "../../net/channel/server_upstream.ts";
import { openClientConnection } from "../../net/http2/client_connection.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { ThrowawayCa } from "../support/certificates/throwaway_ca.ts";
import { TUNNEL_SERVER_NAME } from "../../proto/identity/node_name.ts";
import {
  activateAuthority,
  rotateAuthority,
} from "../../server/identity/authorities.ts";
import { Machine } from "../support/rigs/enrolled_agent.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { RecordedLog } from "../support/watch/recorded_log.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";
import { authorityIdOf } from "../../proto/identity/enrolment.ts";

/** Joins by an agent, which does not stay. */
async function join(rig: IdentityRig, machine: Machine): Promise<void> {
  const { running } = await machine.link(rig, { token: await rig.token() });
  running.stop("it is not needed");
  await running.finished;
}

function write(machine: Machine, name: string, text: string): Promise<void> {
  return Deno.writeTextFile(`${machine.stateDirectory}/${name}`, text);
}

/** The upstream of a program on a machine that has joined. */
function follow(rig: IdentityRig, machine: Machine) {
  const addresses = [{ host: "127.0.0.1", port: rig.tunnel.agentPort }];
  const identity = new FollowedIdentity(
    { stateDirectory: machine.stateDirectory, addresses },
    { log: new RecordedLog(), environment: () => undefined },
  );
  const upstream = tlsUpstream({
    addresses,
    identity,
    credentials: () => identity.current,
    serverName: TUNNEL_SERVER_NAME,
    proxyEnv: {},
  });
  const connect = () =>
    upstream.connect((transport) => {
      const connection = openClientConnection(transport, {
        timers: systemTimers,
      });
      upstream.used?.(connection);
      return connection;
    }, new AbortController().signal);
  return { identity, connect };
}

Deno.test("authorities that were replaced on disk are taken when a handshake fails", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  await join(rig, machine);
  const { identity, connect } = follow(rig, machine);
  const right = await machine.read("ca.pem");
  await write(machine, "ca.pem", (await ThrowawayCa.create()).cert);
  await assertRejects(connect, Error, "not signed by a CA that is trusted");
  assertMatch(identity.problem ?? "", /not signed by a CA that is trusted/);
  await write(machine, "ca.pem", right);
  // Whether or not the watch has seen it by now.
  (await connect()).shutdown("done");
  assertEquals(identity.problem, undefined);
  identity.stop();
});

Deno.test("a node without a link learns of the next authority, says so, and renews when it issues", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  await join(rig, machine);
  const isKnown = rig.tunnel.log.next(/authorities/);
  const { next } = await rotateAuthority(rig.state);
  await isKnown;
  const { identity, connect } = follow(rig, machine);
  const nextId = authorityIdOf(next!.facts);
  const first = await connect();
  await eventually(
    "the server has it written down",
    () => rig.nodes.read("edge-7")?.trusts?.includes(nextId) ?? false,
  );
  first.shutdown("done");
  identity.stop();
  const isNoticed = rig.tunnel.log.next(/authorities/);
  await activateAuthority(rig.state);
  await isNoticed;
  const later = follow(rig, machine);
  const second = await later.connect();
  await eventually(
    "it is of the next authority",
    () => rig.nodes.read("edge-7")?.certificate?.authority === nextId,
    20_000,
  );
  second.shutdown("done");
  later.identity.stop();
});

Deno.test("two programs of one node renew once", async () => {
  await using rig = await IdentityRig.open();
  using machine = new Machine("edge-7");
  await join(rig, machine);
  await rotateAuthority(rig.state);
  await activateAuthority(rig.state);
  const programs = Array.from({ length: 4 }, () =>
    new FollowedIdentity({
      stateDirectory: machine.stateDirectory,
      addresses: [{ host: "127.0.0.1", port: rig.tunnel.agentPort }],
    }, {
      log: new RecordedLog(),
      environment: () => undefined,
      isBrief: true,
    }));
  const { bundle } = await rig.authorities();
  await write(machine, "ca.pem", bundle);
  const before = await machine.read("cert.pem");
  await Promise.all(programs.map((program) => program.ready()));
  const shown = new Set(programs.map(({ current }) => current.cert));
  assertEquals(shown.size, 1);
  assert(!shown.has(before));
  const renewals = rig.tunnel.log.matching(/node renews its certificate/);
  assertEquals(renewals.length, 1);
  for (const program of programs) program.stop();
});

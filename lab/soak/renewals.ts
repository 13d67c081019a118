/**
 * A thousand certificates renewed, and the authority changed, while connections
 * go on: nobody may notice.
 *
 * Certificates live for seconds here; everything else is as it always is.
 *
 * @module
 */

import { certificateFacts } from "../../platform/pki/certificate.ts";
import {
  activateAuthority,
  retireAuthority,
  rotateAuthority,
} from "../../server/identity/authorities.ts";
import type { Tally } from "../../tests/support/watch/tally.ts";
import { Machine } from "../../tests/support/rigs/enrolled_agent.ts";
import { IdentityRig } from "../../tests/support/rigs/identity_rig.ts";
import { memoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { eventually } from "../../tests/support/rigs/tunnel_harness.ts";
import { EchoLoad } from "./echo_load.ts";

const RENEWALS = 1_000;
const AGENTS = 50;
const LINKS_PER_AGENT = 2;
const CONNECTIONS = 200;
/** Renewed at two thirds: each agent every two or three seconds. */
const LIFE_MS = 4_000;
const TIMEOUT_MS = 300_000;
const LOOK_MS = 250;
const RENEWED =
  'tunnel_server_identity_calls_total{method="renew",status="OK"}';

/** Runs it and says what became of the connections. */
export async function soakRenewals(tally: Tally): Promise<void> {
  const stateDirectory = memoryFolder();
  await using rig = await IdentityRig.open({
    identity: {
      stateDirectory,
      serverNames: ["127.0.0.1"],
      nodeCertificateLifeMs: LIFE_MS,
    },
  }, stateDirectory);
  const token = await rig.token({ uses: AGENTS });
  const machines = Array.from(
    { length: AGENTS },
    (_, index) => new Machine(`n${index}`),
  );
  const random = Math.random;
  for (const machine of machines) {
    await machine.link(rig, { token, links: LINKS_PER_AGENT, random });
  }
  await using load = new EchoLoad(rig.tunnel.socketPath);
  await load.open(CONNECTIONS);
  const startMs = performance.now();
  const before = await rig.tunnel.metric(RENEWED);
  let renewals = 0;
  while (renewals < RENEWALS) {
    if (performance.now() - startMs > TIMEOUT_MS) break;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    renewals = await rig.tunnel.metric(RENEWED) - before;
  }
  const seconds = (performance.now() - startMs) / 1_000;
  for (const change of [rotateAuthority, activateAuthority, retireAuthority]) {
    await change(rig.state);
    await untilFollowed(rig, machines);
  }
  const { open, messages, dropped } = load.counts;
  const logs = machines.map(({ log }) => log);
  const lost = logs.flatMap((log) => log.matching(/^link lost/));
  const troubles = logs.flatMap((log) => log.matching(/trying again/));
  const line = `${renewals} certificates renewed in ${seconds.toFixed(0)} s ` +
    `and the authority changed by ${AGENTS} agents, ${dropped.length} of ${
      open + dropped.length
    } ` +
    `connections dropped, ${lost.length} links lost, ${messages} messages`;
  const isGood = renewals >= RENEWALS && dropped.length === 0 &&
    lost.length === 0;
  if (isGood) tally.pass(line);
  else tally.fail("certificates are renewed under load", line);
  tally.note(`     ${troubles.length} renewals were tried again`);
  for (const { message } of troubles.slice(0, 3)) tally.note(`     ${message}`);
  for (const { running } of rig.tunnel.agents) running.stop("it is over");
  await untilQuiet(rig);
  for (const machine of machines) machine[Symbol.dispose]();
}

/** All trust what the server trusts, and are of the authority that issues. */
async function untilFollowed(
  rig: IdentityRig,
  machines: readonly Machine[],
): Promise<void> {
  const { bundle, current } = await rig.authorities();
  const { publicKey } = current.facts.x509;
  for (const machine of machines) {
    await eventually(`${machine.name} follows`, async () => {
      if (await machine.read("ca.pem") !== bundle) return false;
      return certificateFacts(await machine.read("cert.pem")).x509.verify(
        publicKey,
      );
    });
  }
}

/** What was asked for last is still being written. */
async function untilQuiet(rig: IdentityRig): Promise<void> {
  let before = NaN;
  for (let now = 0; now !== before;) {
    before = now;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    now = await rig.tunnel.metric(RENEWED);
  }
}

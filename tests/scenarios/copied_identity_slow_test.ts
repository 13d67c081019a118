/**
 * A copied identity: a cloned machine or a stolen key. Two live processes of one
 * key are found, shown and, where that is asked for, kept apart; what is no copy
 * is told by `server/links/duplicates_test.ts`.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DuplicateRecords } from "../../server/identity/duplicate_records.ts";
import { runToEnd } from "../support/program/run.ts";
import { NodeStage } from "../support/rigs/node_stage.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

const FOUND = /^agent "gw" is linked by 2 processes with one key, from /;

Deno.test("a state directory that is copied to a second process is found and shown", async () => {
  await using stage = await NodeStage.open();
  const server = stage.server.child;
  const honest = await stage.join("gw");
  // As a disk image is cloned.
  await runToEnd(["cp", "-a", honest, stage.folderOf("clone")]);
  const programs = [
    server,
    stage.agent("gw"),
    stage.agent("gw", `--state-dir=${stage.folderOf("clone")}`),
  ];
  for (const program of programs) {
    await program.untilPrinted(/agent "gw" is linked by 2 processes with one/);
  }
  const list = async (...flags: readonly string[]) =>
    (await stage.ask("node", "list", ...flags)).stdout;
  const duplicate = async () => JSON.parse(await list("--json"))[0].duplicate;
  const { now, instances } = await duplicate();
  assertEquals([now, instances.length], [true, 2]);
  await programs.pop()!.stop("SIGKILL");
  await server.untilPrinted(/no second process speaks for the agent any more/);
  assertEquals((await duplicate()).now, false);
  await server.stop();
  // Without the server the state tells it.
  assertMatch(
    await list(),
    /LINKED TWICE\n.* until .*, from 127\.0\.0\.1:\d+ /,
  );
  // An operator has dealt with it.
  assertEquals((await stage.ask("node", "approve", "gw")).code, 0);
  assertEquals(await duplicate(), undefined);
  assert(!(await list()).includes("LINKED TWICE"));
});

for (const carrier of ["streams", "packets"] as const) {
  Deno.test(`two live processes of one key are counted (${carrier})`, async () => {
    await using rig = await IdentityRig.open();
    const node = await rig.joined("gw");
    const first = await rig.link(node, { carrier });
    // The certificate is renewed meanwhile: the key is what counts.
    await node.renew(await rig.place());
    const second = await rig.link(node, { carrier });
    const { message } = await rig.tunnel.log.until(FOUND);
    assertMatch(message, /`tunnel node revoke gw` .* join by another name/);
    const now = "tunnel_server_duplicate_identities";
    assertEquals(await rig.tunnel.metric(now), 1);
    assertEquals(await rig.tunnel.metric(`${now}_total`), 1);
    if (carrier === "streams") {
      await first.log.until(FOUND);
      await second.log.until(FOUND);
    }
    second.running.stop("dealt with");
    await rig.tunnel.log.until(/^no second process speaks for/);
    assertEquals(await rig.tunnel.metric(now), 0);
    assertEquals(rig.tunnel.log.matching(FOUND).length, 1);
  });

  Deno.test(`with refuse who came first stays (${carrier})`, async () => {
    await using rig = await IdentityRig.open({ duplicateIdentity: "refuse" });
    const node = await rig.joined("gw");
    const first = await rig.link(node, { carrier });
    const second = await rig.tunnel.agent(
      await rig.agentConfig(node, { carrier }),
    );
    await second.log.until(/another process that lives has the same key/);
    assertEquals(rig.tunnel.log.matching(/^agent linked$/).length, 1);
    await rig.tunnel.log.until(
      /^refused a second process that speaks for agent/,
    );
    const records = new DuplicateRecords(rig.state);
    await eventually("it is kept for `tunnel node list`", async () => {
      return (await records.list()).get("gw")?.instances.length === 2;
    });
    const refused = "tunnel_server_duplicate_identities_refused_total";
    assert((await rig.tunnel.metric(refused)) >= 1);
    first.running.stop("it goes");
    await second.log.until(/^linked to server$/);
    assertEquals(rig.tunnel.log.matching(FOUND), []);
  });
}

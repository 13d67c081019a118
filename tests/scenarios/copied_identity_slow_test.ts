/**
 * A copied identity: a cloned machine or a stolen key. Two live processes of one
 * key are found, shown and, where that is asked for, kept apart; a restart is
 * never taken for one.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Carrier } from "../../proto/link/link.ts";
import { DuplicateRecords } from "../../server/identity/duplicate_records.ts";
import {
  DUPLICATE_ANSWER_MS,
  SETTLE_MS,
} from "../../server/links/duplicates.ts";
import { Child } from "../support/program/child.ts";
import { ourCommand } from "../support/program/tunnel.ts";
import { Workspace } from "../support/program/workspace.ts";
import { IdentityStage } from "../support/rigs/identity_stage.ts";
import { IdentityRig } from "../support/rigs/identity_rig.ts";
import { memoryFolder } from "../support/memory/memory_folder.ts";
import { eventually } from "../support/rigs/tunnel_harness.ts";

const FOUND_AFTER_MS = SETTLE_MS + DUPLICATE_ANSWER_MS;
const FOUND = /^agent "gw" is linked by 2 processes with one key, from /;

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function run(...words: readonly string[]): Promise<string> {
  const [program, ...args] = ourCommand(...words);
  const output = await new Deno.Command(program!, { args }).output();
  const decoder = new TextDecoder();
  assert(output.success, decoder.decode(output.stderr));
  return decoder.decode(output.stdout);
}

function agentOf(workspace: Workspace, folder: string): Child {
  return new Child({
    name: "agent",
    command: [
      ...ourCommand("agent"),
      `--state-dir=${folder}`,
      "--health-server-host=127.0.0.1",
      "--health-server-port=0",
      "--admin-server-port=0",
    ],
    logFile: workspace.path("agent.log"),
  });
}

Deno.test("a state directory that is copied to a second process is found and shown", async () => {
  const workspace = await Workspace.make();
  const stage = new IdentityStage(workspace);
  const children: Child[] = [];
  try {
    const server = await stage.start();
    children.push(server);
    const token = await stage.createToken("--node=gw");
    const where = `--server=127.0.0.1:${stage.agentPort}`;
    const [honest, clone] = [workspace.path("honest"), workspace.path("clone")];
    await run("join", token, where, "--node=gw", `--state-dir=${honest}`);
    // As a disk image is cloned.
    await new Deno.Command("cp", {
      args: ["-a", honest, clone],
    }).output();
    for (const folder of [honest, clone]) {
      const agent = agentOf(workspace, folder);
      children.push(agent);
      await agent.untilPrinted(/linked to server/);
    }
    for (const child of children) {
      await child.untilPrinted(/agent "gw" is linked by 2 processes with one/);
    }
    const state = `--state-dir=${stage.stateDirectory}`;
    const [node] = JSON.parse(await run("node", "list", "--json", state));
    assertEquals(node.duplicate.now, true);
    assertEquals(node.duplicate.instances.length, 2);
    await children.pop()!.stop("SIGKILL");
    await server.untilPrinted(
      /no second process speaks for the agent any more/,
    );
    const kept = async () =>
      JSON.parse(await run("node", "list", "--json", state))[0].duplicate;
    assertEquals((await kept()).now, false);
    await server.stop();
    // Without the server the state tells it.
    const table = await run("node", "list", state);
    assertMatch(table, /LINKED TWICE\n.* until .*, from 127\.0\.0\.1:\d+ /);
    // Somebody has dealt with it.
    await run("node", "approve", "gw", state);
    assertEquals(await kept(), undefined);
    assert(!(await run("node", "list", state)).includes("LINKED TWICE"));
  } finally {
    for (const child of children.reverse()) await child.stop("SIGKILL");
    await workspace.remove();
  }
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

/** Starts an agent anew, each time in another way. */
async function restart(rig: IdentityRig, carrier: Carrier): Promise<void> {
  const node = await rig.joined("gw");
  let agent = await rig.link(node, { carrier });
  for (let turn = 0; turn < 30; turn++) {
    const before = agent;
    if (turn % 3 === 0) {
      // At once, and the line is gone.
      before.running.stop("killed");
      agent = await rig.link(node, { carrier });
    } else if (turn % 3 === 1) {
      before.running.shutdown();
      agent = await rig.link(node, { carrier });
    } else {
      // The next one is there before the one before is told to go.
      agent = await rig.link(node, { carrier });
      before.running.shutdown();
    }
    // An agent that drains takes seconds over it.
    if (turn < 27) before.running.stop("it has drained");
  }
  // One that serves what it has, for as long as it likes, beside its successor.
  const drainTimeoutMs = 60_000;
  agent.running.stop("that one has no such time");
  agent = await rig.link(node, { carrier, drainTimeoutMs });
  const held = await rig.tunnel.connect("grpc");
  agent.running.shutdown();
  await rig.link(node, { carrier });
  await pass(FOUND_AFTER_MS + 2_000);
  held.caller.send("still there");
  await held.target.received(11);
}

for (const carrier of ["streams", "packets"] as const) {
  Deno.test(`thirty restarts and hand-overs are no copy (${carrier})`, async () => {
    await using rig = await IdentityRig.open();
    await restart(rig, carrier);
    assertEquals(rig.tunnel.log.matching(/linked by 2|no second process/), []);
  });
}

Deno.test("several links of one process are no copy, nor is one cut off", async () => {
  await using rig = await IdentityRig.open({}, memoryFolder(), {
    strategies: ["default"],
  });
  const node = await rig.joined("gw");
  const options = await rig.tunnel.agentOptions(await rig.agentConfig(node));
  const line = rig.tunnel.newLine();
  const agent = rig.tunnel.startAgent({
    ...options,
    server: {
      ...options.server,
      links: 4,
      addresses: [{ host: "127.0.0.1", port: line.port }],
    },
  });
  await agent.log.until(/^linked to server$/);
  rig.tunnel.cut();
  await pass(FOUND_AFTER_MS + 2_000);
  assertEquals(rig.tunnel.log.matching(/linked by 2 processes/), []);
});

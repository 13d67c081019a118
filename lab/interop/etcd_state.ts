/**
 * Servers that have their state in a real etcd: one identity, whatever happens to
 * etcd.
 *
 * @module
 */

import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { mustRun } from "../../tests/support/program/run.ts";
import { ourCommand } from "../../tests/support/program/tunnel.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";
import {
  checkJoinAndRevoke,
  stateCases,
  StateServers,
} from "../../tests/support/rigs/state_servers.ts";
import { sharedStateCases } from "../../tests/versions/shared_state.ts";
import type { EtcdCases, EtcdContext } from "./etcd_case.ts";

/** A file with a key. */
async function keyFile(workspace: Workspace): Promise<string> {
  const path = workspace.path("state.key");
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  await Deno.writeFile(path, bytes, { mode: 0o600 });
  return path;
}

let places = 0;

/** A place of its own in a cluster. */
async function serversOn(
  workspace: Workspace,
  { urls }: Pick<EtcdCluster, "urls">,
  ...more: readonly string[]
): Promise<StateServers> {
  const isTls = urls[0]!.startsWith("https");
  const hosts = urls.map((url) => new URL(url).host).join(",");
  const scheme = isTls ? "etcds" : "etcd";
  return new StateServers(workspace, [
    `--state=${scheme}://${hosts}/state-${++places}/`,
    `--state-key-file=${await keyFile(workspace)}`,
    ...more,
  ]);
}

export const ETCD_STATE_CASES: EtcdCases = {
  ...stateCases(
    "etcd",
    ({ workspace, cluster }: EtcdContext) => serversOn(workspace, cluster),
  ),
  ...sharedStateCases(
    "etcd",
    ({ workspace }: EtcdContext) => workspace,
    async ({ workspace, cluster }) => {
      const at = await serversOn(workspace, cluster);
      // Those of the older file have no right to the network.
      at.commands = ourCommand;
      return at;
    },
  ),
  "state in etcd: no private key can be read there, and another key file is told":
    async ({ cluster, workspace }) => {
      await using at = await serversOn(workspace, cluster);
      const { child } = await at.start();
      const prefix = new URL(at.flags[0]!.slice("--state=".length)).pathname;
      const keys = await cluster.keys(prefix);
      assert(keys.some(({ key }) => key.endsWith("ca/roles.json")));
      for (const { key, value } of keys) {
        assert(!value.includes("PRIVATE KEY"), key);
      }
      await child.stop("SIGTERM");
      const other = new StateServers(workspace, [
        at.flags[0]!,
        `--state-key-file=${await keyFile(workspace)}`,
      ]);
      const { success, stderr } = await other.run("ca", "show");
      assertEquals(success, false);
      assertStringIncludes(stderr, "it is encrypted with the key");
      const none = new StateServers(workspace, [
        at.flags[0]!,
        "--state-key-file=none",
      ]);
      assertStringIncludes(
        (await none.run("ca", "show")).stderr,
        "give --state-key-file",
      );
      const unsaid = new StateServers(workspace, at.flags.slice(0, 1));
      assertStringIncludes(
        (await unsaid.run("ca", "show")).stderr,
        "Cannot keep keys of a CA in etcd as they are",
      );
    },

  "state in etcd: etcd is killed, links stay, changes wait, and what was missed is heard":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace);
      await using at = await serversOn(workspace, cluster);
      const [one, other] = [await at.start(), await at.start()];
      const { folder } = await at.join(
        "gw",
        await at.token("--node=gw"),
        one,
      );
      const agent = await at.link(folder, other);
      const waiting = await at.token("--node=late");
      await cluster.stopMember(0, "SIGKILL");
      await other.child.untilPrinted(/the state in etcd is away/);
      await one.child.untilPrinted(/the state in etcd is away/);
      const refused = await at.join("late", waiting, other);
      assertEquals(refused.success, false);
      assertStringIncludes(
        await (await fetch(`${other.healthUrl}/readyz?verbose`)).text(),
        "the state in etcd is away",
      );
      const metrics = await (await fetch(`${other.healthUrl}/metrics`)).text();
      assertStringIncludes(metrics, "tunnel_server_state_reachable 0");
      // A new link is decided by what is known.
      await agent.stop("SIGTERM");
      const next = await at.link(folder, other);
      await cluster.startMember(0);
      await cluster.ready();
      await other.child.untilPrinted(/the state in etcd is back after/);
      await one.child.untilPrinted(/the state in etcd is back after/);
      const joined = await at.join("late", waiting, other);
      assert(joined.success, joined.stderr);
      const ended = next.untilPrinted(/node was revoked/);
      await at.must("node", "revoke", "gw");
      await ended;
    },

  "state in etcd: what was revoked while a server heard nothing, and compacted, ends its links":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace);
      await using at = await serversOn(workspace, cluster);
      const server = await at.start();
      const { folder } = await at.join(
        "gw",
        await at.token("--node=gw"),
        server,
      );
      const agent = await at.link(folder, server);
      const ended = agent.untilPrinted(/node was revoked/);
      server.child.signal("SIGSTOP");
      await at.must("node", "revoke", "gw");
      await cluster.compact();
      // Its watch is gone with the member that had it.
      await cluster.stopMember(0, "SIGKILL");
      await cluster.startMember(0);
      await cluster.ready();
      server.child.signal("SIGCONT");
      await ended;
    },

  "state in etcd: a server moves there from its directory and back, and nobody joins again":
    async ({ cluster, workspace }) => {
      await using here = new StateServers(workspace, []);
      const first = await here.start();
      const folder = first.stateDirectory;
      const [state, key] = (await serversOn(workspace, cluster)).flags;
      const to = state!.slice("--state=".length);
      const keyFlag = key!.slice("--state-key-file=".length);
      const own = `--state-dir=${folder}`;
      const created = await here.run("token", "create", "--json", own);
      const { token } = JSON.parse(created.stdout);
      const { folder: node } = await here.join("gw", token, first);
      await first.child.stop("SIGTERM");
      const copied = await mustRun(
        "state",
        "copy",
        folder,
        to,
        `--to-key-file=${keyFlag}`,
      );
      assertStringIncludes(copied, "1 nodes");
      await using there = new StateServers(workspace, [state!, key!]);
      assertStringIncludes(await there.must("state", "check"), "are whole");
      const second = await there.start();
      const agent = await there.link(node, second);
      await agent.stop("SIGTERM");
      await second.child.stop("SIGTERM");
      const back = workspace.path("back");
      await mustRun("state", "copy", to, back, `--from-key-file=${keyFlag}`);
      const third = await here.start(back);
      await here.link(node, third);
    },

  "state in etcd: a user with rights to its prefix alone is enough, and without them it is said at once":
    async ({ workspace }) => {
      await using cluster = await EtcdCluster.start(workspace);
      const file = async (password: string) => {
        const path = workspace.path("password");
        await Deno.writeTextFile(path, `${password}\n`, { mode: 0o600 });
        return `--etcd-password-file=${path}`;
      };
      const user = { name: "edge", password: "a secret" };
      const good = ["--etcd-user=edge", await file(user.password)];
      await using at = await serversOn(workspace, cluster, ...good);
      const prefix = new URL(at.flags[0]!.slice("--state=".length)).pathname;
      await cluster.enableAuth([{ ...user, prefix }]);
      await checkJoinAndRevoke(at);
      const other = at.flags[0]!.replace(prefix, "/other/");
      const refused = new StateServers(workspace, [
        other,
        ...at.flags.slice(1),
      ]);
      const beginMs = performance.now();
      const { success, stderr } = await refused.run("node", "list");
      assertEquals(success, false);
      assertStringIncludes(stderr, "permission denied");
      assert(performance.now() - beginMs < 10_000, "it waited in vain");
    },

  "state in etcd: TLS with certificates, and only with them": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace, { withTls: true });
    const { ca, client } = workspace.certificates;
    const files = [`--etcd-ca-cert=${ca}`];
    const pair = [`--etcd-cert=${client.cert}`, `--etcd-key=${client.key}`];
    await using at = await serversOn(workspace, cluster, ...files, ...pair);
    const server = await at.start();
    const { success, stderr } = await at.join(
      "n",
      await at.token("--node=n"),
      server,
    );
    assert(success, stderr);
    const bare = new StateServers(workspace, at.flags.slice(0, 3));
    const refused = await bare.run("node", "list");
    assertEquals(refused.success, false);
    assertStringIncludes(refused.stderr, "Cannot open the state in etcd");
  },
};

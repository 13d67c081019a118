/**
 * Who may speak to a real etcd: users, and certificates.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { EtcdError } from "../../neighbours/etcd/errors.ts";
import { bytesOf } from "../../neighbours/etcd/keys.ts";
import { EtcdCluster } from "../peers/etcd_cluster.ts";
import { clientOf, type EtcdCases, FollowedCopy } from "./etcd_case.ts";

export const ETCD_ACCESS_CASES: EtcdCases = {
  "a user does what it may, and new tokens come by themselves": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace);
    const edge = { name: "edge", password: "a secret" };
    // Before users are asked for, one may be given all the same.
    using early = clientOf(cluster, { user: edge });
    await early.put("/edge/a", bytesOf("0"));
    await cluster.enableAuth([{ ...edge, prefix: "/edge/" }]);
    await early.put("/edge/a", bytesOf("1"));
    await using copy = new FollowedCopy(
      clientOf(cluster, { user: edge }),
      "/edge/",
    );
    await copy.until("following");
    await assertRejects(
      () => early.put("/other", bytesOf("1")),
      EtcdError,
      "permission denied; grant the user a role",
    );
    // A member that was restarted knows no tokens.
    await cluster.stopMember(0, "SIGKILL");
    await cluster.startMember(0);
    await cluster.ready();
    await early.put("/edge/a", bytesOf("2"));
    await copy.until("/edge/a=2");
    await copy.equals(cluster, "/edge/");
  },

  "a watch of what may not be read says why": async ({ workspace }) => {
    await using cluster = await EtcdCluster.start(workspace);
    const edge = { name: "edge", password: "a secret" };
    await cluster.enableAuth([{ ...edge, prefix: "/edge/" }]);
    await using copy = new FollowedCopy(
      clientOf(cluster, { user: edge }),
      "/other/",
    );
    await copy.until("permission denied; grant the user a role");
    assertEquals(copy.lists, 0);
  },

  "no user and a wrong password are told apart": async ({ workspace }) => {
    await using cluster = await EtcdCluster.start(workspace);
    const edge = { name: "edge", password: "a secret" };
    await cluster.enableAuth([{ ...edge, prefix: "/edge/" }]);
    using nobody = clientOf(cluster);
    await assertRejects(
      () => nobody.get("/edge/a"),
      EtcdError,
      "it wants a user",
    );
    using guess = clientOf(cluster, { user: { name: "edge", password: "?" } });
    await assertRejects(
      () => guess.get("/edge/a"),
      EtcdError,
      "the user or its password is wrong",
    );
  },

  "TLS with a certificate of ours; without one, or by another CA, not": async (
    { workspace },
  ) => {
    await using cluster = await EtcdCluster.start(workspace, { withTls: true });
    const { ca, client } = workspace.certificates;
    const tls = { ca, cert: client.cert, key: client.key };
    await using copy = new FollowedCopy(clientOf(cluster, { tls }), "/tls/");
    await copy.until("following");
    using writer = clientOf(cluster, { tls });
    await writer.put("/tls/a", bytesOf("1"));
    await copy.until("/tls/a=1");
    await copy.equals(cluster, "/tls/");
    using nameless = clientOf(cluster, { tls: { ca } });
    const refused = await assertRejects(
      () => nameless.get("/tls/a"),
      EtcdError,
    );
    assert(/want a certificate/.test(refused.message), refused.message);
    using trusting = clientOf(cluster, {
      tls: { cert: client.cert, key: client.key },
    });
    await assertRejects(
      () => trusting.get("/tls/a"),
      EtcdError,
      "not signed by a CA that is trusted here",
    );
    const urls = cluster.urls.map((url) => url.replace("https", "http"));
    using plain = clientOf({ urls });
    await assertRejects(() => plain.get("/tls/a"), EtcdError, "try https://");
  },
};

/**
 * Our client of the API server, against a real one: ways to log in, errors, a
 * list and watch that outlives everything.
 *
 * @module
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { KubernetesClient } from "../../neighbours/kubernetes/client.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import { inClusterAccess } from "../../neighbours/kubernetes/connect.ts";
import {
  ListWatch,
  type ListWatchClient,
} from "../../neighbours/kubernetes/list_watch.ts";
import type {
  KubernetesObject,
  Lease,
  ObjectList,
} from "../../neighbours/kubernetes/objects.ts";
import {
  LEASES,
  NODES,
  objectPathOf,
} from "../../neighbours/kubernetes/paths.ts";
import { reviewToken } from "../../neighbours/kubernetes/token_review.ts";
import { userOf } from "../peers/kube_cluster.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  AUDIENCE,
  clientOf,
  eventually,
  type KubeCases,
  type KubeContext,
  tokenOf,
} from "./kube_case.ts";

/** More than a page. */
const MANY = 620;

const COLLECTION = objectPathOf(LEASES, { namespace: "default" });

/** Who may read Nodes, by a role of the cluster. */
async function readerToken(context: KubeContext): Promise<string> {
  const token = await tokenOf(context, "reader", []);
  const { cluster } = context;
  await cluster.bind("system:node", "ServiceAccount", "reader", "reader");
  return token;
}

async function canRead(client: KubernetesClient): Promise<void> {
  // Roles take effect when the API server's own watch has brought them.
  await eventually("the role is known", async () => {
    try {
      await client.get(objectPathOf(NODES), { timeoutMs: 2_000 });
      return true;
    } catch (error) {
      if (error instanceof KubernetesError && error.code === 403) return false;
      throw error;
    }
  });
}

/** What a list and watch of Leases with a label has said so far. */
function follow(client: ListWatchClient, label: string) {
  const said: string[] = [];
  const listWatch = new ListWatch<KubernetesObject>({
    client,
    path: COLLECTION,
    query: { labelSelector: `test=${label}` },
    timers: systemTimers,
    random: Math.random,
    onChanges: (changes) => {
      for (const { type, object } of changes) {
        said.push(`${type} ${object.metadata.name}`);
      }
    },
    onSynced: () => said.push("synced"),
  });
  listWatch.start();
  return { said, listWatch };
}

function leaseOf(name: string, label: string): Lease {
  return { metadata: { name, namespace: "default", labels: { test: label } } };
}

export const KUBE_CLIENT_CASES: KubeCases = {
  "objects are made, read, changed and deleted with a client certificate":
    async (
      context,
    ) => {
      using client = clientOf(context);
      const made = await client.create(COLLECTION, leaseOf("crud", "crud"));
      const path = `${COLLECTION}/crud`;
      const spec = { holderIdentity: "me", leaseDurationSeconds: 30 };
      await client.replace(path, { ...made, spec });
      const late = await assertRejects(
        () => client.replace(path, { ...made, spec }),
        KubernetesError,
      );
      assertEquals([late.code, late.reason], [409, "Conflict"]);
      const again = await assertRejects(
        () => client.create(COLLECTION, leaseOf("crud", "crud")),
        KubernetesError,
      );
      assertEquals([again.code, again.reason], [409, "AlreadyExists"]);
      const { resourceVersion } = made.metadata;
      await assertRejects(
        () => client.delete(path, { resourceVersion: resourceVersion! }),
        KubernetesError,
        "409",
      );
      await client.delete(path);
      const gone = await assertRejects(() => client.get(path), KubernetesError);
      assertEquals([gone.code, gone.reason], [404, "NotFound"]);
    },

  "a token file is read again when its token is refused": async (context) => {
    const token = await readerToken(context);
    const tokenFile = context.workspace.path("reader-token");
    await Deno.writeTextFile(tokenFile, "not.a.token\n");
    const kubeconfig = await context.cluster.kubeconfig("file", { tokenFile });
    using client = clientOf(context, kubeconfig);
    const refused = await assertRejects(
      () => client.get(objectPathOf(NODES)),
      KubernetesError,
    );
    assertEquals(refused.code, 401);
    await Deno.writeTextFile(tokenFile, `${token}\n`);
    await canRead(client);
    const denied = await assertRejects(
      () => client.create("/api/v1/namespaces", { metadata: { name: "n" } }),
      KubernetesError,
      "grant this user that verb",
    );
    assertEquals(denied.code, 403);
  },

  "an exec plugin's token and its certificate both log in": async (context) => {
    const { cluster, workspace } = context;
    const apiVersion = "client.authentication.k8s.io/v1";
    const plugin = async (name: string, status: object) => {
      const answer = workspace.path("answer.json");
      const kind = "ExecCredential";
      const text = JSON.stringify({ apiVersion, kind, status });
      await Deno.writeTextFile(answer, text, { mode: 0o600 });
      const exec = { apiVersion, command: "cat", args: [answer] };
      return await cluster.kubeconfig(name, { exec });
    };
    const token = await readerToken(context);
    using byToken = clientOf(context, await plugin("exec-token", { token }));
    await canRead(byToken);
    const pair = await cluster.issue("plugin", {
      commonName: "plugin",
      organizations: ["system:masters"],
      usage: "client",
    });
    using byCertificate = clientOf(
      context,
      await plugin("exec-cert", {
        clientCertificateData: await Deno.readTextFile(pair.cert),
        clientKeyData: await Deno.readTextFile(pair.key),
      }),
    );
    await byCertificate.get(objectPathOf(NODES));
  },

  "a Pod's own token and CA log in": async (context) => {
    const { cluster, workspace } = context;
    const folder = workspace.path("serviceaccount");
    await Deno.mkdir(folder);
    await Deno.copyFile(cluster.caFile, `${folder}/ca.crt`);
    await Deno.writeTextFile(`${folder}/token`, await readerToken(context));
    const { hostname, port } = new URL(cluster.server);
    const values = new Map([
      ["KUBERNETES_SERVICE_HOST", hostname],
      ["KUBERNETES_SERVICE_PORT", port],
    ]);
    const access = inClusterAccess({
      clock: systemTimers,
      folder,
      environment: (name) => values.get(name),
    });
    using client = new KubernetesClient({
      access: () => access,
      timers: systemTimers,
      random: Math.random,
    });
    await canRead(client);
  },

  "a new client certificate is used for the next request": async (context) => {
    const { cluster } = context;
    const name = "rotating";
    const spec = { commonName: "nobody", usage: "client" } as const;
    const pair = await cluster.issue(name, spec);
    const kubeconfig = await cluster.kubeconfig(name, userOf(pair));
    using client = clientOf(context, kubeconfig);
    const nodes = objectPathOf(NODES);
    const before = await assertRejects(
      () => client.get(nodes),
      KubernetesError,
    );
    assertEquals(before.code, 403);
    await cluster.issue(name, { ...spec, organizations: ["system:masters"] });
    // A second client stands for the minute until files are looked at again.
    using later = clientOf(context, kubeconfig);
    await later.get(nodes);
  },

  "an API server that cannot prove itself is not believed": async (context) => {
    const { cluster, workspace } = context;
    const token = await readerToken(context);
    const kubeconfig = await cluster.kubeconfig("unauthorized", { token });
    const config = JSON.parse(await Deno.readTextFile(kubeconfig));
    config.clusters[0].cluster["certificate-authority"] =
      workspace.certificates.ca;
    await Deno.writeTextFile(kubeconfig, JSON.stringify(config));
    using client = clientOf(context, kubeconfig);
    const error = await assertRejects(
      () => client.get(objectPathOf(NODES), { timeoutMs: 1_000 }),
      KubernetesError,
      "give the CA of",
    );
    assertEquals(error.code, 0);
  },

  "a list of several pages and a watch make a copy that follows": async (
    context,
  ) => {
    using client = clientOf(context);
    const names = Array.from({ length: MANY }, (_, index) => `page-${index}`);
    const making = [...names];
    const make = async () => {
      for (let name = making.pop(); name !== undefined; name = making.pop()) {
        await client.create(COLLECTION, leaseOf(name, "pages"));
      }
    };
    await Promise.all(Array.from({ length: 20 }, make));
    const pages = await client.get<ObjectList<Lease>>(COLLECTION, {
      query: { limit: "500", labelSelector: "test=pages" },
    });
    assert(pages.metadata.continue, "there is one page only");
    const { said, listWatch } = follow(client, "pages");
    await eventually("it is listed", () => said.includes("synced"));
    assertEquals(listWatch.objects.size, MANY);
    assertEquals(said.length, MANY + 1);
    const path = `${COLLECTION}/page-7`;
    const seven = await client.get<Lease>(path);
    await client.replace(path, { ...seven, spec: { holderIdentity: "me" } });
    await client.delete(`${COLLECTION}/page-8`);
    await client.create(COLLECTION, leaseOf("page-more", "pages"));
    await eventually("all is heard", () => said.length === MANY + 4);
    assertEquals(said.slice(-3), [
      "updated page-7",
      "removed page-8",
      "added page-more",
    ]);
    await listWatch.stop();
  },

  "an API server that restarts has forgotten the past, and is listed again":
    async (
      context,
    ) => {
      using client = clientOf(context);
      await client.create(COLLECTION, leaseOf("old-1", "old"));
      let asksBack: "later" | "next" | "done" = "later";
      const goesBack: ListWatchClient = {
        get: (path, options) => client.get(path, options),
        stream: async (path, options) => {
          const isBack = asksBack === "next";
          // The first watch after the restart asks for what is forgotten.
          const query = { ...options.query };
          if (isBack) query["resourceVersion"] = "1";
          const body = await client.stream(path, { ...options, query });
          if (isBack) asksBack = "done";
          return body;
        },
      };
      const { said, listWatch } = follow(goesBack, "old");
      const lists = () => said.filter((line) => line === "synced").length;
      await eventually("it is listed", () => said.length === 2);
      await client.create(COLLECTION, leaseOf("old-2", "old"));
      await eventually("it follows", () => said.length === 3);
      asksBack = "next";
      await context.cluster.restartApiServer(() => Promise.resolve());
      await eventually(
        "it has asked for what is forgotten",
        () => asksBack === "done",
      );
      await eventually("it is listed again", () => lists() > 1);
      await client.create(COLLECTION, leaseOf("old-3", "old"));
      await eventually("it follows again", () => said.includes("added old-3"));
      await listWatch.stop();
    },

  "a review tells whose a token is, for whom, and that a broken one is none":
    async (
      context,
    ) => {
      using client = clientOf(context);
      const token = await tokenOf(context, "agent");
      const review = (text: string, audience = AUDIENCE) =>
        reviewToken(client, text, audience, 5_000);
      assertEquals(await review(token), {
        kind: "service-account",
        namespace: "kube-system",
        name: "agent",
        // It is bound to no Pod.
        nodeName: undefined,
        podName: undefined,
        podUid: undefined,
      });
      assertEquals((await review(token, "vault")).kind, "invalid");
      assertEquals((await review(`${token}x`)).kind, "invalid");
      assertEquals((await review("x")).kind, "invalid");
    },
};

/**
 * Servers that meet at a real kube-apiserver, and Konnectivity's agent that
 * counts them.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { LEASES, objectPathOf } from "../../neighbours/kubernetes/paths.ts";
import { KubernetesError } from "../../neighbours/kubernetes/errors.ts";
import type { Lease, ObjectList } from "../../neighbours/kubernetes/objects.ts";
import { KubernetesEphemerals } from "../../neighbours/store/kubernetes_ephemerals.ts";
import { EphemeralTexts } from "../../neighbours/store/ephemerals.ts";
import { launchAgent } from "../../tests/support/program/tunnel.ts";
import {
  MeetingServers,
  serversComeAndGo,
} from "../../tests/support/rigs/meeting_servers.ts";
import { clientOf, type KubeCases, type KubeContext } from "./kube_case.ts";
import {
  membersMeet,
  type OpenMember,
  TestMember,
  TIMEOUT_MS,
} from "../../tests/support/rigs/test_member.ts";

function openerOf(context: KubeContext, namespace: string): OpenMember {
  return (who) => {
    const client = clientOf(context);
    let isCut = false;
    /** The client's, until it is cut. */
    const unlessCut = <Args extends unknown[], Result>(
      ask: (...args: Args) => Promise<Result>,
    ) =>
    (...args: Args): Promise<Result> =>
      isCut
        ? Promise.reject(new KubernetesError(0, "", "Cannot ask: it is cut"))
        : ask.apply(client, args);
    const options = { ...who, timeoutMs: TIMEOUT_MS, timers: systemTimers };
    const place = new KubernetesEphemerals({
      ...options,
      client: {
        get: unlessCut(client.get) as typeof client.get,
        create: unlessCut(client.create) as typeof client.create,
        replace: unlessCut(client.replace) as typeof client.replace,
        delete: unlessCut(client.delete),
        stream: unlessCut(client.stream),
      },
      namespace,
      topic: "peers",
      labels: { "k8s-app": "konnectivity-server" },
      random: Math.random,
      wallClock: Date.now,
    });
    const ephemerals = new EphemeralTexts(place, options);
    const cut = () => {
      if (!isCut) client[Symbol.dispose]();
      isCut = true;
    };
    return { ephemerals, cut };
  };
}

async function leases(
  context: KubeContext,
  namespace: string,
): Promise<readonly Lease[]> {
  using client = clientOf(context);
  const path = objectPathOf(LEASES, { namespace });
  const { items } = await client.get<ObjectList<Lease>>(path);
  return items ?? [];
}

export const KUBE_MEMBER_CASES: KubeCases = {
  "an agent links servers that meet by leases, as they come and go": async (
    { cluster },
  ) => {
    const namespace = "members-come";
    await cluster.kubectl(["create", "namespace", namespace]);
    await using rig = await MeetingServers.open([
      `--state=kubernetes:${namespace}`,
      `--kubeconfig=${cluster.adminKubeconfig}`,
      "--state-key-file=none",
    ]);
    await serversComeAndGo(rig);
  },

  "Konnectivity's agent counts servers that meet by leases": async (
    context,
  ) => {
    const namespace = "members-go";
    await context.cluster.kubectl(["create", "namespace", namespace]);
    await using rig = await MeetingServers.open([
      `--state=kubernetes:${namespace}`,
      `--kubeconfig=${context.cluster.adminKubeconfig}`,
      "--state-key-file=none",
    ]);
    for (const id of ["s1", "s2"]) {
      const server = rig.addMeeting(id);
      await server.start();
      rig.balancer.add(server.agentPort);
    }
    const at = { agentHost: "127.0.0.1", agentPort: rig.balancer.port };
    const agent = await launchAgent(rig.workspace, at, "konnectivity", [
      "--count-server-leases",
      `--lease-namespace=${namespace}`,
      `--kubeconfig=${context.cluster.adminKubeconfig}`,
    ]);
    try {
      await Promise.all(rig.servers.map((server) => server.untilLinked()));
    } finally {
      await agent.child.stop("SIGKILL");
    }
  },

  "servers that meet by leases see each other, their agents and their ends":
    async (context) => {
      const namespace = "members-meet";
      await context.cluster.kubectl(["create", "namespace", namespace]);
      await membersMeet(openerOf(context, namespace));
    },

  "a server's lease is upstream's, and is deleted with its agents' lists":
    async (context) => {
      const namespace = "members-lease";
      await context.cluster.kubectl(["create", "namespace", namespace]);
      {
        await using one = new TestMember(openerOf(context, namespace), "s1");
        await using two = new TestMember(openerOf(context, namespace), "s2");
        await one.sees("s2");
        await two.sees("s1");
        const found = (await leases(context, namespace))
          .filter(({ metadata }) =>
            metadata.labels?.["k8s-app"] === "konnectivity-server"
          );
        assertEquals(
          found.map(({ metadata, spec }) => [
            metadata.name,
            spec?.holderIdentity,
            spec?.leaseDurationSeconds,
          ]),
          [
            ["konnectivity-proxy-server-s1", "s1", 30],
            ["konnectivity-proxy-server-s2", "s2", 30],
          ],
        );
      }
      assertEquals(await leases(context, namespace), []);
    },
};

/**
 * Agents with ServiceAccount tokens before a server that has them reviewed:
 * ours and Konnectivity's on either end.
 *
 * @module
 */

import { assert, assertStringIncludes } from "@std/assert";
import type {
  Maker,
  RunningAgent,
} from "../../tests/support/program/tunnel.ts";
import {
  AUDIENCE,
  boundToken,
  eventually,
  getsIn,
  type KubeCases,
  type KubeContext,
  tokenOf,
  Tunnels,
} from "./kube_case.ts";

/**
 * Until a log says this, the agent's or, since Konnectivity's agent does not
 * look at why it is refused, the server's; the agent must have no link then.
 */
async function isRefused(
  agent: RunningAgent,
  words: string,
  heardBy = agent.child,
): Promise<void> {
  await eventually(`${heardBy.name} writes "${words}"`, async () => {
    const log = await Deno.readTextFile(heardBy.logFile).catch(() => "");
    return log.includes(words);
  });
  const ready = await fetch(`${agent.healthUrl}/readyz`);
  await ready.body?.cancel();
  assert(!ready.ok, "the agent has a link");
}

const tokenFlag = (path: string) => `--service-account-token-path=${path}`;

function admits(server: Maker, agent: Maker) {
  return async (context: KubeContext) => {
    await using tunnels = new Tunnels(context);
    const file = await tunnels.tokenFile(await tokenOf(context, "agent"));
    // Konnectivity's agent sends the line feed along, and gRPC refuses it.
    const token = (await Deno.readTextFile(file)).trim();
    if (agent === "konnectivity") await Deno.writeTextFile(file, token);
    const running = await tunnels.server(server);
    await getsIn(
      running,
      await tunnels.agent(running, agent, [tokenFlag(file)]),
    );
  };
}

/** What a server of ours says to an agent with a token, or without. */
function refuses(
  words: string,
  token: (context: KubeContext) => Promise<string | undefined>,
) {
  return async (context: KubeContext) => {
    await using tunnels = new Tunnels(context);
    const shown = await token(context);
    for (const maker of ["ours", "konnectivity"] as const) {
      const server = await tunnels.server("ours");
      const flags: string[] = [];
      if (shown !== undefined) {
        const file = await tunnels.tokenFile(shown);
        await Deno.writeTextFile(file, shown);
        flags.push(tokenFlag(file));
      }
      const agent = await tunnels.agent(server, maker, flags);
      const heardBy = maker === "ours" ? agent.child : server.child;
      await isRefused(agent, words, heardBy);
      await agent.child.stop("SIGKILL");
    }
  };
}

const MAKERS = [
  ["ours", "our"],
  ["konnectivity", "Konnectivity's"],
] as const;

/** One that is bound to a Pod on a node of that name. */
async function tokenOn(context: KubeContext, node: string): Promise<string> {
  await context.cluster.apply([{ kind: "Node", metadata: { name: node } }]);
  return await boundToken(context, node, "agent", `--audience=${AUDIENCE}`);
}

export const KUBE_TOKEN_CASES: KubeCases = {
  ...Object.fromEntries(
    MAKERS.flatMap(([server, serverName]) =>
      MAKERS.map(([agent, agentName]) => [
        `${agentName} agent's token lets it into ${serverName} server`,
        admits(server, agent),
      ])
    ),
  ),

  "a token for another audience is refused with a reason": refuses(
    "its token is not valid here",
    (context) => tokenOf(context, "agent", ["--audience=vault"]),
  ),
  "a token for the API server itself is refused": refuses(
    "its token is not valid here",
    (context) => tokenOf(context, "agent", []),
  ),
  "a token of another ServiceAccount is refused by name": refuses(
    "its token is of ServiceAccount kube-system/other",
    (context) => tokenOf(context, "other"),
  ),
  "a text that is no token is refused": refuses(
    "its token is not valid here",
    () => Promise.resolve("eyJhbGciOiJub25lIn0.e30."),
  ),
  "an agent without a token is told what to set": refuses(
    "set --service-account-token-path",
    () => Promise.resolve(undefined),
  ),

  "a token that is replaced in its file is used for the next attempt": async (
    context,
  ) => {
    await using tunnels = new Tunnels(context);
    const file = await tunnels.tokenFile(await tokenOf(context, "other"));
    const server = await tunnels.server("ours");
    const agent = await tunnels.agent(server, "ours", [tokenFlag(file)]);
    await isRefused(agent, "its token is of ServiceAccount kube-system/other");
    await Deno.writeTextFile(file, `${await tokenOf(context, "agent")}\n`);
    await getsIn(server, agent);
  },

  "a token that is not there yet is waited for": async (context) => {
    await using tunnels = new Tunnels(context);
    const token = await tokenOf(context, "agent");
    const file = context.workspace.path("late-token");
    const server = await tunnels.server("ours");
    const agent = await tunnels.agent(server, "ours", [tokenFlag(file)]);
    await isRefused(agent, "there is no such file");
    await Deno.writeTextFile(file, token);
    await getsIn(server, agent);
  },

  "a server without the right to review says so, and lets nobody in": async (
    context,
  ) => {
    await using tunnels = new Tunnels(context);
    const { cluster } = context;
    const kubeconfig = await cluster.user("rightless");
    const file = await tunnels.tokenFile(await tokenOf(context, "agent"));
    const server = await tunnels.server("ours", [], kubeconfig);
    const agent = await tunnels.agent(server, "ours", [tokenFlag(file)]);
    await isRefused(agent, "the server cannot ask the Kubernetes API server");
    const log = await Deno.readTextFile(server.child.logFile);
    assertStringIncludes(log, "403 Forbidden");
    assertStringIncludes(log, "grant this user that verb by a Role");
  },

  "a bound token lets its own node in and no other, when that is enforced":
    async (
      context,
    ) => {
      await using tunnels = new Tunnels(context);
      const file = await tunnels.tokenFile(await tokenOn(context, "edge1"));
      const server = await tunnels.server("ours", ["--node-binding=enforce"]);
      const named = (node: string) => [
        tokenFlag(file),
        `--agent-id=${node}`,
        `--agent-identifiers=host=${node}`,
      ];
      const impostor = await tunnels.agent(server, "ours", named("edge2"));
      await isRefused(impostor, 'its token is bound to node "edge1"');
      const agent = await tunnels.agent(server, "ours", named("edge1"));
      await getsIn(server, agent);
    },

  "a token of no Pod takes nobody's name, when that is enforced": async (
    context,
  ) => {
    await using tunnels = new Tunnels(context);
    const thief = [
      "--agent-id=edge1",
      "--agent-identifiers=host=edge1&cidr=0.0.0.0/0&default-route=true",
    ];
    const file = await tunnels.tokenFile(await tokenOf(context, "agent"));
    const token = (await Deno.readTextFile(file)).trim();
    await Deno.writeTextFile(file, token);
    for (const maker of ["ours", "konnectivity"] as const) {
      const server = await tunnels.server("ours", ["--node-binding=enforce"]);
      const flags = [tokenFlag(file), ...thief];
      const agent = await tunnels.agent(server, maker, flags);
      const heardBy = maker === "ours" ? agent.child : server.child;
      await isRefused(agent, "names no node, for it is bound to no", heardBy);
      await agent.child.stop("SIGKILL");
    }
  },

  "a bound token that is shown for another node is seen, when that is not enforced":
    async (
      context,
    ) => {
      await using tunnels = new Tunnels(context);
      const token = await tokenOn(context, "edge1");
      const file = context.workspace.path("token");
      await Deno.writeTextFile(file, token);
      const server = await tunnels.server("ours");
      const flags = [tokenFlag(file), "--agent-id=edge2"];
      await getsIn(server, await tunnels.agent(server, "konnectivity", flags));
      const log = await Deno.readTextFile(server.child.logFile);
      assertStringIncludes(log, 'its token is bound to node "edge1"');
    },
};

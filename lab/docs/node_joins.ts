/**
 * What most pages begin with: a server at the hub, and a node that joins it.
 *
 * @module
 */

import type { Child } from "../../tests/support/program/child.ts";
import type { DocsStage } from "./docs_stage.ts";

/** When a server takes agents and callers. */
export const SERVER_UP = /server started/;

/** When an agent may be dialed through. */
export const AGENT_UP = /linked to server/;

/** When a proxy serves. */
export const PROXY_UP = /proxy started/;

/** The token in what `tunnel token create` says. */
export function tokenIn(said: string): string {
  const [token] = /tnl1\.\S+/.exec(said) ?? [];
  if (token === undefined) throw new Error(`No token in: ${said}`);
  return token;
}

/** `tunnel server` with these flags. */
export function startServer(
  { hub }: DocsStage,
  flags = "",
  env: Readonly<Record<string, string>> = {},
): Promise<Child> {
  return hub.start(`tunnel server ${flags}`, SERVER_UP, env);
}

/** A token for the node. */
export async function newToken(
  { hub }: DocsStage,
  name: string,
): Promise<string> {
  return tokenIn(await hub.must(`tunnel token create --node ${name}`));
}

/** The node joins by this name, and has an agent. */
export async function startAgent(
  stage: DocsStage,
  name: string,
  flags = "",
): Promise<Child> {
  const token = await newToken(stage, name);
  return await stage.node.start(
    `tunnel agent --server tunnel.example:8091 --join ${token} ` +
      `--node ${name} ${flags}`,
    AGENT_UP,
  );
}

/**
 * What stands at the end of a tunnel that is under load.
 *
 * @module
 */

import { Child } from "../../tests/support/program/child.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import type { Workspace } from "../../tests/support/program/workspace.ts";

/** What answers loadgen's clients. @param prefix Such as of a namespace. */
export async function startTarget(
  workspace: Workspace,
  address: string,
  prefix: readonly string[] = [],
): Promise<Child> {
  return new Child({
    name: "target",
    command: [...prefix, await findPeer("loadgen"), "target", address],
    logFile: workspace.path("target.log"),
  });
}

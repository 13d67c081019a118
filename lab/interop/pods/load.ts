// deno-lint-ignore-file no-console -- what Pods had is the note of a case.
/**
 * What Pods go through under their limits: new connections, requests and bytes.
 *
 * @module
 */

import { assertEquals } from "@std/assert";
import { freePort } from "../../../tests/support/program/ports.ts";
import { findPeer } from "../../../tests/support/program/peers.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import { mustEnd } from "../../../tests/support/program/run.ts";
import { startTarget } from "../../peers/load_target.ts";
import type { Pod } from "./pod.ts";

/** As loadgen takes them. */
const LOADS = [
  ["-mode", "conn", "-n", "16", "-d", "4s"],
  ["-mode", "conn", "-n", "64", "-d", "4s"],
  ["-mode", "rr", "-n", "64", "-d", "3s"],
  ["-mode", "down", "-n", "16", "-gb", "1"],
  ["-mode", "up", "-n", "16", "-gb", "1"],
  // Readers that stand still, on either side: that is what takes most.
  ["-mode", "pinned", "-n", "100", "-stall-side", "target"],
  ["-mode", "pinned", "-n", "100", "-stall-side", "client"],
];

/** @param socket A frontend, whose agent is on this machine. */
export async function loadPods(
  workspace: Workspace,
  socket: string,
  pods: readonly Pod[],
): Promise<void> {
  const port = freePort();
  const address = `127.0.0.1:${port}`;
  const target = await startTarget(workspace, address);
  // Before it listens, dials to it are refused, as they should be.
  await target.untilListening(port);
  const loadgen = [
    ...[await findPeer("loadgen"), "-via", `unix:${socket}`],
    ...["-to", address],
  ];
  for (const load of LOADS) {
    const { errs, first_err } = JSON.parse(
      await mustEnd([...loadgen, ...load]),
    );
    assertEquals(errs, 0, `${load.join(" ")}: ${first_err}`);
  }
  await target.stop("SIGKILL");
  const had = await Promise.all(pods.map((pod) => pod.memory()));
  console.log(`     memory at most, with files: ${had.join(", ")}`);
}

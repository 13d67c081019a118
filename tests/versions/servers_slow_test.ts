/** Servers of two versions share a directory; in etcd: `lab/interop/etcd_state.ts`. */

import { Workspace } from "../support/program/workspace.ts";
import { StateServers } from "../support/rigs/state_servers.ts";
import { sharedStateCases } from "./shared_state.ts";

const CASES = sharedStateCases<Workspace>(
  "a directory",
  (workspace) => workspace,
  (workspace) => {
    const state = `--state=${workspace.path("shared")}`;
    return Promise.resolve(new StateServers(workspace, [state]));
  },
);

for (const [sentence, check] of Object.entries(CASES)) {
  Deno.test(`versions: ${sentence}`, async () => {
    const workspace = await Workspace.make();
    await check(workspace);
    await workspace.remove();
  });
}

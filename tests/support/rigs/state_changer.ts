/**
 * A program that changes a state directory until somebody kills it: for tests
 * of what is left then. Waits for a line on standard input before it begins.
 *
 * Arguments: `create` or `change`, and the directory.
 *
 * @module
 */

import {
  activateAuthority,
  createAuthorities,
  loadAuthorities,
  retireAuthority,
  rotateAuthority,
} from "../../../server/identity/authorities.ts";
import { ensureServerLeaf } from "../../../server/identity/leaf_certificates.ts";
import { DirectoryStore } from "../../../neighbours/store/directory_store.ts";

const [what, root] = Deno.args as ["create" | "change", string];
const encoder = new TextEncoder();
Deno.stdout.writeSync(encoder.encode("ready\n"));
await Deno.stdin.read(new Uint8Array(1));

const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
await leaf();
if (what === "change") {
  // The directory may be in the middle of a change: begin with any step.
  const steps = [retireAuthority, rotateAuthority, activateAuthority];
  for (let step = 0;; step++) {
    await steps[step % steps.length]!(state).catch(() => {});
    await leaf();
  }
}

async function leaf(): Promise<void> {
  const authorities = await loadAuthorities(state);
  const ensure = () => ensureServerLeaf(state, authorities, [], Date.now());
  await state.exclusively(ensure);
}

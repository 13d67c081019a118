import { assert, assertEquals } from "@std/assert";
import { Credentials } from "../../net/tls/trust/credentials.ts";
import {
  createAuthorities,
  loadAuthorities,
  trustedBy,
} from "../../server/identity/authorities.ts";
import { ensureServerLeaf } from "../../server/identity/leaf_certificates.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { Prng } from "../support/memory/prng.ts";

// A process that makes or changes a state directory is killed (SIGKILL) at any
// moment: what it leaves is usable, and its authority is never another one.

const ROUNDS = 25;
/** Longer than making a directory takes. */
const KILL_WITHIN_MS = 120;

/** Starts the program, lets it work a moment, and kills it. */
async function killAtWork(
  what: "create" | "change",
  root: string,
  afterMs: number,
): Promise<void> {
  const script = new URL("../support/rigs/state_changer.ts", import.meta.url);
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-check",
      "--quiet",
      "--allow-read",
      "--allow-write",
      "--allow-sys",
      "--allow-env",
      script.pathname,
      what,
      root,
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.getReader();
  await reader.read(); // It is ready.
  const writer = child.stdin.getWriter();
  await writer.write(Uint8Array.of(10));
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  try {
    child.kill("SIGKILL");
  } catch {
    // It was through already.
  }
  await writer.close().catch(() => {});
  await reader.cancel();
  await child.status;
}

/** Opens what is there as a server would. @returns Keys that are trusted. */
async function open(root: string): Promise<string[]> {
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  const authorities = await loadAuthorities(state);
  await ensureServerLeaf(state, authorities, [], Date.now());
  const server = state.path("server.pem");
  Credentials.load({ cert: server, key: server });
  return trustedBy(authorities).map(({ publicKeySha256 }) => publicKeySha256);
}

async function isComplete(root: string): Promise<boolean> {
  return await Deno.stat(`${root}/format`).then(() => true, () => false);
}

Deno.test("killed while it is made, a directory is whole or made anew", async () => {
  const prng = Prng.fromEnvironment();
  const folder = await Deno.makeTempDir();
  const seen = { complete: 0, begun: 0, nothing: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    const root = `${folder}/${round}`;
    await killAtWork("create", root, prng.below(KILL_WITHIN_MS));
    const wasComplete = await isComplete(root);
    const wasBegun = await Deno.stat(root).then(() => true, () => false);
    seen[wasComplete ? "complete" : wasBegun ? "begun" : "nothing"]++;
    const before = wasComplete
      ? await Deno.readTextFile(`${root}/ca/bundle.crt`)
      : undefined;
    const keys = await open(root);
    assertEquals(await open(root), keys, `seed ${prng.seed}`);
    const after = await Deno.readTextFile(`${root}/ca/bundle.crt`);
    if (before !== undefined) assertEquals(after, before, `seed ${prng.seed}`);
  }
  await Deno.remove(folder, { recursive: true });
  assert(seen.complete + seen.begun > 0, JSON.stringify(seen));
});

Deno.test("killed while its authority changes, a directory is whole", async () => {
  const prng = Prng.fromEnvironment();
  const root = await Deno.makeTempDir();
  let trusted = await open(root);
  for (let round = 0; round < ROUNDS; round++) {
    await killAtWork("change", root, prng.below(KILL_WITHIN_MS));
    trusted = await open(root);
    assert(trusted.length >= 1 && trusted.length <= 2, `seed ${prng.seed}`);
    assertEquals(await open(root), trusted, `seed ${prng.seed}`);
  }
  await Deno.remove(root, { recursive: true });
});

import { assert, assertEquals, assertRejects } from "@std/assert";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../tests/support/memory/memory_store.ts";
import { createState } from "../state/open_state.ts";
import { RemoteStore } from "../../neighbours/store/remote_store.ts";
import { sealingKey } from "../../neighbours/store/sealing.ts";
import {
  copyToDirectory,
  copyToRemote,
  differencesOf,
} from "../state/state_copy.ts";
import { DirectoryStore } from "../../neighbours/store/directory_store.ts";
import { StoreError } from "../../neighbours/store/store_error.ts";
import {
  createAuthorities,
  loadAuthorities,
  rotateAuthority,
} from "./authorities.ts";
import { TokenStore } from "./token_store.ts";

const TOKEN = {
  lifeMs: 60_000,
  uses: 2,
  nodePattern: "*",
  identifiers: "",
  needsApproval: false,
  note: "",
};

async function engineOf(place: MemoryPlace) {
  const key = await sealingKey(new Uint8Array(32), "/key");
  const engine = await RemoteStore.open({
    store: new MemoryStore(place),
    key,
    timers: systemTimers,
    wallClock: Date.now,
    random: () => 0,
    warn: () => {},
  });
  return { engine, key };
}

async function stateIn(root: string): Promise<DirectoryStore> {
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  await rotateAuthority(state);
  await new TokenStore(state).create(TOKEN, "pin", Date.now());
  for (let index = 0; index < 120; index++) {
    await state.transact((it) => it.put(`nodes/n${index}.json`, `${index}`));
  }
  return state;
}

Deno.test("a state goes to another place and back, and is the same", () =>
  inMemoryFolder(async (folder) => {
    const from = await stateIn(`${folder}/a`);
    const place = new MemoryPlace();
    const { engine, key } = await engineOf(place);
    const counts = await copyToRemote(from, engine);
    assertEquals(counts, { ca: 5, tokens: 1, nodes: 120, duplicates: 0 });
    for (const [name, { text }] of place.records) {
      assert(!text.includes("PRIVATE"), name);
    }
    const there = await loadAuthorities(engine);
    assertEquals(there.bundle, (await loadAuthorities(from)).bundle);
    // It is a state now: no server makes another one.
    assertEquals(await createState(engine, createAuthorities), false);
    await copyToDirectory(engine, `${folder}/b/`, undefined);
    const back = await DirectoryStore.open(`${folder}/b`);
    assertEquals(await differencesOf(from, back), []);
    await copyToDirectory(engine, `${folder}/c`, key);
    const sealed = await DirectoryStore.open(`${folder}/c`, key);
    assertEquals((await loadAuthorities(sealed)).bundle, there.bundle);
    await engine.close();
  }));

Deno.test("a copy that was interrupted is no state, and goes on", () =>
  inMemoryFolder(async (folder) => {
    const from = await stateIn(`${folder}/a`);
    const place = new MemoryPlace();
    const { engine } = await engineOf(place);
    let commits = 0;
    place.meanwhile = () => {
      if (++commits === 3) place.leave();
    };
    await assertRejects(() => copyToRemote(from, engine), StoreError);
    place.meanwhile = undefined;
    place.comeBack();
    assert(place.records.size > 40, `${place.records.size}`);
    const create = () => createState(engine, createAuthorities);
    await assertRejects(create, StoreError, "a state is being copied there");
    // What changed meanwhile is as it is now.
    await from.transact((change) => change.remove("nodes/n0.json"));
    assertEquals((await copyToRemote(from, engine)).nodes, 119);
    await engine.close();
  }));

Deno.test("nothing is copied over what is there", () =>
  inMemoryFolder(async (folder) => {
    const from = await stateIn(`${folder}/a`);
    const { engine } = await engineOf(new MemoryPlace());
    await createState(engine, createAuthorities);
    const { bundle } = await loadAuthorities(engine);
    const over = () => copyToRemote(from, engine);
    const error = await assertRejects(
      over,
      StoreError,
      "there are records already",
    );
    assertEquals(error.tunnelCode, "TUN801");
    assertEquals((await loadAuthorities(engine)).bundle, bundle);
    const { engine: half } = await engineOf(new MemoryPlace());
    await half.transact((change) => change.put("nodes/n.json", "{}"));
    const onto = () => copyToRemote(from, half);
    await assertRejects(onto, StoreError, "name an empty place");
    await assertRejects(
      () => copyToDirectory(engine, `${folder}/a`, undefined),
      StoreError,
      "it holds ",
    );
    await engine.close();
    await half.close();
  }));

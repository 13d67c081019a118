import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import {
  createAuthorities,
  loadAuthorities,
  rotateAuthority,
} from "../identity/authorities.ts";
import {
  AUTHORITY_ROLES,
  DirectoryStore,
} from "../../neighbours/store/directory_store.ts";
import { damaged, StoreError } from "../../neighbours/store/store_error.ts";
import { inMemoryFolder } from "../../tests/support/memory/memory_folder.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import {
  MemoryPlace,
  MemoryStore,
} from "../../tests/support/memory/memory_store.ts";
import { createState, openOrCreateState } from "./open_state.ts";
import { RemoteStore } from "../../neighbours/store/remote_store.ts";
import { sealingKey } from "../../neighbours/store/sealing.ts";
import { copyToDirectory, copyToRemote, differencesOf } from "./state_copy.ts";
import { TokenStore } from "../identity/token_store.ts";

/** The authority's key, which must never be another one silently. */
async function openedPin(root: string): Promise<string> {
  const { state } = await DirectoryStore.openOrCreate(root, createAuthorities);
  return (await loadAuthorities(state)).current.facts.publicKeySha256;
}

Deno.test("a directory is made once, for its owner only", () =>
  inMemoryFolder(async (folder) => {
    const root = `${folder}/a/b`;
    const [one, other] = await Promise.all([openedPin(root), openedPin(root)]);
    assertEquals(one, other, "two servers that start at once");
    assertEquals(await openedPin(root), one);
    for (const name of ["", "/ca", "/nodes", "/tokens"]) {
      assertEquals((await Deno.stat(root + name)).mode! & 0o777, 0o700, name);
    }
    assertEquals((await Deno.stat(`${root}/format`)).mode! & 0o777, 0o600);
  }));

Deno.test("an empty volume with its lost+found is an empty directory", () =>
  inMemoryFolder(async (folder) => {
    await Deno.mkdir(`${folder}/lost+found`);
    await openedPin(folder);
  }));

Deno.test("a directory that is missing is not made by a reader", () =>
  inMemoryFolder(async (folder) => {
    await assertRejects(
      () => DirectoryStore.open(`${folder}/none`),
      StoreError,
      "start `tunnel server` first",
    );
    await assertRejects(
      () => Deno.stat(`${folder}/none`),
      Deno.errors.NotFound,
    );
  }));

Deno.test("what was left half made is begun anew", () =>
  inMemoryFolder(async (folder) => {
    const root = `${folder}/state`;
    const fail = () => Promise.reject(new Error("killed"));
    await assertRejects(
      () =>
        DirectoryStore.openOrCreate(root, async (state) => {
          await createAuthorities(state);
          return fail();
        }),
      Error,
      "killed",
    );
    await assertRejects(() => DirectoryStore.open(root), StoreError);
    await openedPin(root);
    assertEquals([...Deno.readDirSync(`${root}/ca`)].length, 3);
  }));

Deno.test("a half made directory in which somebody joined is refused", () =>
  inMemoryFolder(async (folder) => {
    await openedPin(folder);
    await Deno.remove(`${folder}/format`);
    await Deno.writeTextFile(`${folder}/creating`, "");
    await Deno.writeTextFile(`${folder}/nodes/a.json`, "{}");
    await assertRejects(() => openedPin(folder), StoreError, "No new CA");
  }));

Deno.test("changes wait for each other, and a failed one stops nobody", () =>
  inMemoryFolder(async (folder) => {
    await openedPin(folder);
    const [one, other] = [
      await DirectoryStore.open(folder),
      await DirectoryStore.open(folder),
    ];
    const seen: string[] = [];
    const change = (name: string) => async () => {
      seen.push(`${name} begins`);
      await Deno.stat(folder);
      seen.push(`${name} ends`);
      if (name === "b") throw new Error("b failed");
    };
    const [, b] = await Promise.allSettled([
      one.exclusively(change("a")),
      one.exclusively(change("b")),
      other.exclusively(change("c")),
    ]);
    assertEquals(b.status, "rejected");
    for (let index = 0; index < 6; index += 2) {
      assertEquals(seen[index]!.split(" ")[0], seen[index + 1]!.split(" ")[0]);
    }
  }));

Deno.test("a full disk is named in the error, with the directory", () =>
  inMemoryFolder(async (folder) => {
    const full = () =>
      Promise.reject(Object.assign(new Error("os error"), { code: "ENOSPC" }));
    const sentence =
      `Cannot use ${folder}/state: the disk is full; make room and try again`;
    await assertRejects(
      () => DirectoryStore.openOrCreate(`${folder}/state`, full),
      StoreError,
      sentence,
    );
    const { state } = await DirectoryStore.openOrCreate(
      `${folder}/state`,
      createAuthorities,
    );
    await assertRejects(() => state.exclusively(full), StoreError, sentence);
  }));

Deno.test("a damaged token or node can be removed, anything else is restored", () => {
  const records = { noun: "the state", where: (key: string) => `/s/${key}` };
  const remedyOf = (key: string) =>
    damaged(records, key, "it is empty").message;
  for (
    const [path, remedy] of [
      ["tokens/abc.json", "`tunnel token revoke abc` removes it"],
      ["tokens/abc.use-3", "`tunnel token revoke abc` removes it"],
      ["nodes/a.b.json", "`tunnel node forget a.b` removes it"],
      ["ca/roles.json", "from a backup"],
    ] as const
  ) assertStringIncludes(remedyOf(path), remedy);
});

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

Deno.test("a place that goes during a start is asked until it is back", () =>
  inMemoryFolder(async (folder) => {
    const place = new MemoryPlace();
    const steps: string[] = [];
    /** It goes at the first time, and comes back when the log has said so. */
    const goes = (step: string) => {
      if (!steps.includes(step)) place.leave();
      steps.push(step);
    };
    const { isNew, content, store } = await openOrCreateState(
      {
        connection: {
          ...{ kind: "etcd", name: "a model", close: () => {} },
          place: () => new MemoryStore(place),
          ephemerals: () => Promise.reject(new Error("nobody asks")),
        },
        warn: (line) => {
          if (line.includes(" is away: ")) {
            setTimeout(() => place.comeBack(), 0);
          }
        },
      },
      folder,
      async (change) => {
        goes("made");
        await change.put(AUTHORITY_ROLES, "the first");
      },
      (store) => {
        goes("read");
        return store.read(AUTHORITY_ROLES);
      },
    );
    assertEquals(steps, ["made", "made", "read", "read"]);
    assertEquals([isNew, content], [true, "the first"]);
    await store.close();
  }));

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

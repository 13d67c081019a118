import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  fetchPinned,
  hasIntegrity,
  type PinnedPackage,
} from "./npm_registry.ts";
import { RUNTIME_PINS } from "./runtime_pins.ts";

const GOOD = new TextEncoder().encode("the runtime that was looked at");
const EVIL = new TextEncoder().encode("#!/bin/sh\necho EVIL");

async function integrityOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = await crypto.subtle.digest("SHA-512", bytes);
  return `sha512-${new Uint8Array(hash).toBase64()}`;
}

/** A registry that says of what it serves that it is what it promised. */
class Registry implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly cache: string = Deno.makeTempDirSync();
  fetched = 0;

  constructor(tarballs: Readonly<Record<string, Uint8Array<ArrayBuffer>>>) {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      async ({ url }) => {
        const version = /\/([\d.]+)\.tgz$/.exec(url)?.[1];
        if (version !== undefined) {
          this.fetched++;
          return new Response(tarballs[version]);
        }
        const versions: Record<string, unknown> = {};
        for (const [version, bytes] of Object.entries(tarballs)) {
          const tarball = `${this.url}${version}.tgz`;
          const integrity = await integrityOf(bytes);
          versions[version] = { dist: { tarball, integrity } };
        }
        return Response.json({ versions });
      },
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  fetch(pinned: PinnedPackage): Promise<Uint8Array> {
    return fetchPinned(pinned, this.cache, this.url);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
    await Deno.remove(this.cache, { recursive: true });
  }
}

async function pin(version: string): Promise<PinnedPackage> {
  return { name: "@deno/x", version, integrity: await integrityOf(GOOD) };
}

Deno.test("a registry that serves something else is not believed, nor a cache", async () => {
  await using registry = new Registry({ "2.9.6": EVIL });
  await Deno.writeFile(`${registry.cache}/@deno+x-2.9.6.tgz`, EVIL);
  await assertRejects(
    async () => registry.fetch(await pin("2.9.6")),
    Error,
    "is not what is pinned (sha512-",
  );
});

Deno.test("no other version is taken in place of the pinned one", async () => {
  await using registry = new Registry({ "2.9.5": GOOD, "2.9.7": GOOD });
  await assertRejects(
    async () => registry.fetch(await pin("2.9.6")),
    Error,
    "Cannot find @deno/x@2.9.6: ",
  );
  assertEquals(registry.fetched, 0);
});

Deno.test("what is pinned is fetched once", async () => {
  await using registry = new Registry({ "2.9.6": GOOD });
  for (let turn = 0; turn < 2; turn++) {
    assertEquals(await registry.fetch(await pin("2.9.6")), GOOD);
  }
  assertEquals(registry.fetched, 1);
});

Deno.test("the runtime of each platform is pinned, to one version", () => {
  const pins = Object.values(RUNTIME_PINS);
  for (const { integrity, version } of pins) {
    assert(/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity));
    assertEquals(version, RUNTIME_PINS.x64.version);
  }
  assertEquals(new Set(pins.map(({ name }) => name)).size, pins.length);
});

Deno.test("hasIntegrity() believes a matching SHA-512 and nothing else", async () => {
  const empty = new Uint8Array();
  const integrity = await integrityOf(empty);
  assertEquals(await hasIntegrity(empty, integrity), true);
  assertEquals(await hasIntegrity(new Uint8Array(1), integrity), false);
  const other = integrity.replace("sha512", "sha1");
  assertEquals(await hasIntegrity(empty, other), false);
});

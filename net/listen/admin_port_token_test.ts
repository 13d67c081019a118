import { assertEquals, assertMatch } from "@std/assert";
import type { AdminRoute } from "../admin/admin_api.ts";
import { adminHandler } from "../admin/http_endpoints.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import { AdminPort, apiBeside } from "./admin_port.ts";

const CATALOG: AdminRoute = {
  method: "GET",
  path: "/v1/catalog",
  role: "view",
  answer: () => ({ it: "is" }),
};

/** An admin port, and what it answers. */
class Admin implements AsyncDisposable {
  readonly log = new RecordedLog();
  readonly folder: string = Deno.makeTempDirSync();
  #port: AdminPort | undefined;

  get path(): string {
    return `${this.folder}/admin.token`;
  }

  get token(): string {
    return Deno.readTextFileSync(this.path).trim();
  }

  async open(hasDirectory = true): Promise<void> {
    this.#port?.close();
    const stateDirectory = hasDirectory ? this.folder : undefined;
    const handler = adminHandler(new MetricRegistry());
    this.#port = new AdminPort({
      address: { hostname: "127.0.0.1", port: 0 },
      access: { stateDirectory, socket: "" },
      log: this.log,
      handler: apiBeside([CATALOG], () => handler),
    });
    await this.#port.open();
  }

  async ask(authorization?: string, path = CATALOG.path): Promise<number> {
    const url = `http://${this.#port!.address}${path}`;
    const headers = { ...(authorization && { authorization }) };
    const response = await fetch(url, { headers });
    await response.body?.cancel();
    return response.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#port?.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("only readers of the token see the catalog, and all see metrics", async () => {
  await using admin = new Admin();
  await admin.open();
  const { token } = admin;
  assertEquals((await Deno.stat(admin.path)).mode! & 0o777, 0o600);
  assertEquals(await admin.ask(`Bearer ${token}`), 200);
  const wrong = [undefined, "Bearer ", `Basic ${token}`, `Bearer ${token}0`];
  for (const shown of [...wrong, `Bearer ${"0".repeat(64)}`]) {
    assertEquals(await admin.ask(shown), 401);
  }
  assertEquals(await admin.ask(undefined, "/metrics"), 200);
});

Deno.test("servers of one directory have one token, unless others could read it", async () => {
  await using admin = new Admin();
  await admin.open();
  const { token } = admin;
  await admin.open();
  assertEquals(admin.token, token);
  await Deno.chmod(admin.path, 0o644);
  await admin.open();
  assertEquals(admin.token === token, false);
  assertEquals((await Deno.stat(admin.path)).mode! & 0o777, 0o600);
  assertMatch(admin.log.take().join(), /mode is 0644.*another token was put/);
  assertEquals(await admin.ask(`Bearer ${token}`), 401);
  // A server that began later has made another one.
  await Deno.writeTextFile(admin.path, "f".repeat(64));
  assertEquals(await admin.ask(`Bearer ${"f".repeat(64)}`), 200);
});

Deno.test("without a place for a token every request is refused", async () => {
  await using admin = new Admin();
  await admin.open(false);
  assertEquals(await admin.ask(), 401);
});

import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { adminHandler } from "../../net/admin/http_endpoints.ts";
import { AdminPort, apiBeside } from "../../net/listen/admin_port.ts";
import { MetricRegistry } from "../../platform/metrics/metrics.ts";
import { RecordedLog } from "../../tests/support/watch/recorded_log.ts";
import type { AdminDebug } from "../options.ts";
import { guardDebug } from "./admin_access.ts";

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

  async open(access: AdminDebug, hasDirectory = true): Promise<void> {
    this.#port?.close();
    const stateDirectory = hasDirectory ? this.folder : undefined;
    const routes = { "/debug/endpointz": () => new Response("the catalog") };
    const guard = {
      access,
      stateDirectory,
      paths: new Set(Object.keys(routes)),
    };
    const handler = adminHandler(new MetricRegistry(), routes);
    this.#port = new AdminPort({
      address: { hostname: "127.0.0.1", port: 0 },
      access: { stateDirectory, socket: "" },
      log: this.log,
      handler: apiBeside([], (door) => guardDebug(handler, door, guard)),
    });
    await this.#port.open();
  }

  async ask(
    authorization?: string,
    path = "/debug/endpointz",
  ): Promise<[status: number, text: string]> {
    const url = `http://${this.#port!.address}${path}`;
    const headers = { ...(authorization && { authorization }) };
    const response = await fetch(url, { headers });
    return [response.status, await response.text()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#port?.close();
    await Deno.remove(this.folder, { recursive: true });
  }
}

Deno.test("only readers of the token see the catalog, and all see metrics", async () => {
  await using admin = new Admin();
  await admin.open("token");
  const { token } = admin;
  assertEquals((await Deno.stat(admin.path)).mode! & 0o777, 0o600);
  assertEquals(await admin.ask(`Bearer ${token}`), [200, "the catalog"]);
  const wrong = [undefined, "Bearer ", `Basic ${token}`, `Bearer ${token}0`];
  for (const shown of [...wrong, `Bearer ${"0".repeat(64)}`]) {
    const [status, text] = await admin.ask(shown);
    assertEquals(status, 403);
    assertStringIncludes(text, `send what is in ${admin.path} as`);
    assertStringIncludes(text, "--admin-debug=open");
    assertEquals(text.includes(token), false);
  }
  assertEquals((await admin.ask(undefined, "/metrics"))[0], 200);
  await admin.open("open");
  assertEquals(await admin.ask(), [200, "the catalog"]);
});

Deno.test("servers of one directory have one token, unless others could read it", async () => {
  await using admin = new Admin();
  await admin.open("token");
  const { token } = admin;
  await admin.open("token");
  assertEquals(admin.token, token);
  await Deno.chmod(admin.path, 0o644);
  await admin.open("token");
  assertEquals(admin.token === token, false);
  assertEquals((await Deno.stat(admin.path)).mode! & 0o777, 0o600);
  assertMatch(admin.log.take().join(), /mode is 0644.*another token was put/);
  assertEquals((await admin.ask(`Bearer ${token}`))[0], 403);
  // A server that began later has made another one.
  await Deno.writeTextFile(admin.path, "f".repeat(64));
  assertEquals((await admin.ask(`Bearer ${"f".repeat(64)}`))[0], 200);
});

Deno.test("without a place for a token every request is refused, with the reason", async () => {
  await using admin = new Admin();
  await admin.open("token", false);
  const [status, text] = await admin.ask();
  assertEquals(status, 403);
  assertStringIncludes(text, "has no --state-dir");
});

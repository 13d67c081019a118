import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { FakeApiServer } from "../../tests/support/peers/fake_apiserver.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { REREAD_MS } from "./access.ts";
import { connectKubernetes, openAccess } from "./connect.ts";
import { KubernetesConfigError, KubernetesError } from "./errors.ts";

Deno.test("an address alone is http, and https where there are files", async () => {
  using home = await Home.make();
  const clock = new FakeTimers();
  const { ca } = home;
  assertEquals(openAccess("a:1", {}, clock).server, "http://a:1");
  assertEquals(openAccess("https://a:1/", {}, clock).server, "https://a:1");
  assertEquals(openAccess("a:1", { ca }, clock).server, "https://a:1");
  assertThrows(
    () => openAccess("http://a:1", { ca }, clock),
    KubernetesConfigError,
    "http has no TLS; write https://a:1",
  );
  assertThrows(
    () => openAccess("a:1", { ca: `${ca}.gone` }, clock),
    KubernetesConfigError,
    "there is no such file",
  );
});

Deno.test("a certificate and its key are shown, and read again", async () => {
  using home = await Home.make();
  const clock = new FakeTimers();
  const { ca, cert, key, pems } = home;
  const access = openAccess("a:1", { ca, cert, key }, clock);
  const keyPair = { cert: pems.client.cert, key: pems.client.key };
  assertEquals(access.authority(), pems.ca);
  assertEquals(await access.credential(), { keyPair });
  const { cert: nextCert, key: nextKey } = pems.otherClient;
  Deno.writeTextFileSync(cert, nextCert);
  Deno.writeTextFileSync(key, nextKey);
  assertEquals(await access.credential(), { keyPair });
  clock.advance(REREAD_MS);
  assertEquals(await access.credential(), {
    keyPair: { cert: nextCert, key: nextKey },
  });
});

Deno.test("an API server by its address is believed by the CA that is given", async () => {
  using home = await Home.make();
  const { ca, pems } = home;
  await using server = FakeApiServer.start(pems.server);
  const { port } = server;
  const master = `127.0.0.1:${port}`;
  using client = connectKubernetes(
    { master, masterFiles: { ca } },
    systemTimers,
  );
  await assertRejects(
    () => client.get("/api/v1/nodes/x"),
    KubernetesError,
    "404",
  );
  using doubtful = connectKubernetes(
    { master: `https://${master}` },
    systemTimers,
  );
  await assertRejects(
    () => doubtful.get("/api/v1/nodes/x", { timeoutMs: 40 }),
    KubernetesError,
  );
});

class Home implements Disposable {
  private constructor(
    readonly folder: string,
    readonly pems: Awaited<ReturnType<typeof certificates>>,
  ) {}

  static async make(): Promise<Home> {
    const pems = await certificates();
    const home = new Home(Deno.makeTempDirSync(), pems);
    Deno.writeTextFileSync(home.ca, pems.ca);
    Deno.writeTextFileSync(home.cert, pems.client.cert);
    Deno.writeTextFileSync(home.key, pems.client.key, { mode: 0o600 });
    return home;
  }

  get ca(): string {
    return `${this.folder}/ca.pem`;
  }

  get cert(): string {
    return `${this.folder}/cert.pem`;
  }

  get key(): string {
    return `${this.folder}/key.pem`;
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { readToken, REREAD_MS, TOKEN_LENGTH_MAX, TokenFile } from "./access.ts";
import { KubernetesConfigError, KubernetesError } from "./errors.ts";
import { connectKubernetes, inClusterAccess, openAccess } from "./connect.ts";
import { FakeApiServer } from "../../tests/support/peers/fake_apiserver.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";

function environment(host: string): (name: string) => string | undefined {
  const values = new Map([
    ["KUBERNETES_SERVICE_HOST", host],
    ["KUBERNETES_SERVICE_PORT", "443"],
  ]);
  return (name) => values.get(name);
}

async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await Deno.makeTempDir();
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(`${folder}/${name}`, text);
  }
  return folder;
}

Deno.test("a Pod finds its API server, namespace, CA and token", async () => {
  const { ca } = await certificates();
  const folder = await folderWith({
    "ca.crt": ca,
    token: "first\n",
    namespace: "kube-system",
  });
  const clock = new FakeTimers();
  const access = inClusterAccess({
    clock,
    folder,
    environment: environment("fd00::1"),
  });
  assertEquals([access.server, access.namespace, access.authority()], [
    "https://[fd00::1]:443",
    "kube-system",
    ca,
  ]);
  await Deno.writeTextFile(`${folder}/token`, "second\n");
  const first = { authorization: "Bearer second" };
  assertEquals(await access.credential(), first);
  await Deno.writeTextFile(`${folder}/token`, "third\n");
  clock.advance(REREAD_MS - 1);
  assertEquals(await access.credential(), first);
  access.rejected();
  assertEquals(await access.credential(), { authorization: "Bearer third" });
  await Deno.remove(folder, { recursive: true });
});

Deno.test("outside a Pod the next step is --kubeconfig", () => {
  const clock = new FakeTimers();
  assertThrows(
    () => inClusterAccess({ clock, environment: () => undefined }),
    KubernetesConfigError,
    "so this is no Pod; give --kubeconfig",
  );
});

Deno.test("a token that is away for a moment goes on being shown", async () => {
  const folder = await folderWith({ token: "t" });
  const clock = new FakeTimers();
  const file = new TokenFile(`${folder}/token`, clock);
  assertEquals(await file.current(), "t");
  await Deno.writeTextFile(`${folder}/token`, "");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "t");
  await Deno.writeTextFile(`${folder}/token`, "u");
  assertEquals(await file.current(), "t", "once a minute");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "u");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a file that holds no token is refused", async () => {
  const folder = await folderWith({
    empty: "\n",
    long: "x".repeat(TOKEN_LENGTH_MAX + 1),
    two: "a\nb",
  });
  const refused = (name: string, words: string) =>
    assertRejects(
      () => readToken(`${folder}/${name}`),
      KubernetesConfigError,
      words,
    );
  await refused("empty", "the file is empty");
  await refused("long", "wanted one line");
  await refused("two", "wanted one line");
  await refused("none", "there is no such file");
  await refused(".", "Cannot read token");
  await Deno.remove(folder, { recursive: true });
});

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

import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { readToken, TOKEN_LENGTH_MAX, TokenFile } from "./access.ts";
import { KubernetesError } from "./errors.ts";
import { connectKubernetes, inClusterAccess, openAccess } from "./connect.ts";
import { FakeApiServer } from "../../tests/support/peers/fake_apiserver.ts";
import { systemTimers } from "../../platform/time/system_timers.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";
import { NeighbourConfigError, REREAD_MS } from "../tls_files.ts";

function environment(host: string): (name: string) => string | undefined {
  const values = new Map([
    ["KUBERNETES_SERVICE_HOST", host],
    ["KUBERNETES_SERVICE_PORT", "443"],
  ]);
  return (name) => values.get(name);
}

/** A folder with what access to an API server is made of. */
class KubeFolder implements Disposable {
  readonly folder = Deno.makeTempDirSync();
  readonly clock = new FakeTimers();

  constructor(files: Readonly<Record<string, string>> = {}) {
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  /** @returns Paths: a CA, a client's certificate and its key. */
  async pems() {
    const { ca, client: { cert, key } } = await certificates();
    const files = { ca, cert, key };
    const paths = { ca: "", cert: "", key: "" };
    for (const name of ["ca", "cert", "key"] as const) {
      this.write(`${name}.pem`, files[name]);
      paths[name] = `${this.folder}/${name}.pem`;
    }
    return paths;
  }

  /** By a kubeconfig of these three maps. */

  access(
    cluster: object,
    user: object = {},
    rest: Record<string, unknown> = {},
  ) {
    this.write(
      "config",
      JSON.stringify({
        "current-context": "main",
        contexts: [{
          name: "main",
          context: { cluster: "c", user: "u", namespace: "edge" },
        }],
        clusters: [{ name: "c", cluster }],
        users: [{ name: "u", user }],
        ...rest,
      }),
    );
    return kubeconfigAccess(`${this.folder}/config`, this.clock);
  }

  write(name: string, text: string, mode = 0o600): void {
    Deno.writeTextFileSync(`${this.folder}/${name}`, text, { mode });
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

Deno.test("a Pod finds its API server, namespace, CA and token", async () => {
  const { ca } = await certificates();
  using home = new KubeFolder({
    "ca.crt": ca,
    token: "first\n",
    namespace: "kube-system",
  });
  const { folder, clock } = home;
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
  home.write("token", "second\n");
  const first = { authorization: "Bearer second" };
  assertEquals(await access.credential(), first);
  home.write("token", "third\n");
  clock.advance(REREAD_MS - 1);
  assertEquals(await access.credential(), first);
  access.rejected();
  assertEquals(await access.credential(), { authorization: "Bearer third" });
});

Deno.test("outside a Pod the next step is --kubeconfig", () => {
  const clock = new FakeTimers();
  assertThrows(
    () => inClusterAccess({ clock, environment: () => undefined }),
    NeighbourConfigError,
    "so this is no Pod; give --kubeconfig",
  );
});

Deno.test("a token that is away for a moment goes on being shown", async () => {
  using home = new KubeFolder({ token: "t" });
  const { folder, clock } = home;
  const file = new TokenFile(`${folder}/token`, clock);
  assertEquals(await file.current(), "t");
  home.write("token", "");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "t");
  home.write("token", "u");
  assertEquals(await file.current(), "t", "once a minute");
  clock.advance(REREAD_MS);
  assertEquals(await file.current(), "u");
});

Deno.test("a file that holds no token is refused", async () => {
  using home = new KubeFolder({
    empty: "\n",
    long: "x".repeat(TOKEN_LENGTH_MAX + 1),
    two: "a\nb",
  });
  const refused = (name: string, words: string) =>
    assertRejects(
      () => readToken(`${home.folder}/${name}`),
      NeighbourConfigError,
      words,
    );
  await refused("empty", "the file is empty");
  await refused("long", "wanted one line");
  await refused("two", "wanted one line");
  await refused("none", "there is no such file");
  await refused(".", "Cannot read token");
});

Deno.test("an address alone is http, and https where there are files", async () => {
  using home = new KubeFolder();
  const { clock } = home;
  const { ca } = await home.pems();
  assertEquals(openAccess("a:1", {}, clock).server, "http://a:1");
  assertEquals(openAccess("https://a:1/", {}, clock).server, "https://a:1");
  assertEquals(openAccess("a:1", { ca }, clock).server, "https://a:1");
  assertThrows(
    () => openAccess("http://a:1", { ca }, clock),
    NeighbourConfigError,
    "http has no TLS; write https://a:1",
  );
  assertThrows(
    () => openAccess("a:1", { ca: `${ca}.gone` }, clock),
    NeighbourConfigError,
    "there is no such file",
  );
});

Deno.test("a certificate and its key are shown, and read again", async () => {
  using home = new KubeFolder();
  const { clock } = home;
  const pems = await certificates();
  const { ca, cert, key } = await home.pems();
  const access = openAccess("a:1", { ca, cert, key }, clock);
  const keyPair = { cert: pems.client.cert, key: pems.client.key };
  assertEquals(access.authority(), pems.ca);
  assertEquals(await access.credential(), { keyPair });
  const { cert: nextCert, key: nextKey } = pems.otherClient;
  home.write("cert.pem", nextCert);
  home.write("key.pem", nextKey);
  assertEquals(await access.credential(), { keyPair });
  clock.advance(REREAD_MS);
  assertEquals(await access.credential(), {
    keyPair: { cert: nextCert, key: nextKey },
  });
});

Deno.test("an API server by its address is believed by the CA that is given", async () => {
  using home = new KubeFolder();
  const { ca } = await home.pems();
  await using server = FakeApiServer.start((await certificates()).server);
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

const HTTPS = { server: "https://api.example:6443/" };
const V1 = "client.authentication.k8s.io/v1";

Deno.test("server, namespace, CA and token come from the current context", async () => {
  using home = new KubeFolder();
  const { ca } = await certificates();
  const access = home.access({
    ...HTTPS,
    "certificate-authority-data": btoa(ca),
    "proxy-url": "http://proxy:3128",
  }, { token: "t" });
  assertEquals(
    [access.server, access.namespace, access.authority(), access.proxyUrl],
    ["https://api.example:6443", "edge", ca, "http://proxy:3128"],
  );
  assertEquals(await access.credential(), { authorization: "Bearer t" });
});

Deno.test("files are found beside the kubeconfig and read again after a minute", async () => {
  using home = new KubeFolder();
  const { ca, otherCa, client, otherClient } = await certificates();
  home.write("ca.crt", ca);
  home.write("client.crt", client.cert);
  home.write("client.key", client.key);
  home.write("token", " first\n");
  const access = home.access(
    { ...HTTPS, "certificate-authority": "ca.crt" },
    {
      "client-certificate": "client.crt",
      "client-key": "client.key",
      tokenFile: "token",
    },
  );
  const first = {
    authorization: "Bearer first",
    keyPair: { cert: client.cert, key: client.key },
  };
  assertEquals(await access.credential(), first);
  home.write("ca.crt", otherCa);
  home.write("client.crt", otherClient.cert);
  home.write("token", "second\n");
  home.clock.advance(REREAD_MS - 1);
  assertEquals(await access.credential(), first);
  home.clock.advance(1);
  // Half of a new pair is none: the old one goes on.
  assertEquals(await access.credential(), {
    ...first,
    authorization: "Bearer second",
  });
  assertEquals(access.authority(), otherCa);
  home.write("client.key", otherClient.key);
  access.rejected();
  assertEquals((await access.credential()).keyPair?.cert, otherClient.cert);
});

Deno.test("certificate data wins over files, and nothing is shown without a user", async () => {
  using home = new KubeFolder();
  const { client } = await certificates();
  const access = home.access(HTTPS, {
    "client-certificate-data": btoa(client.cert),
    "client-certificate": "nowhere.crt",
    "client-key-data": btoa(client.key),
    "client-key": "nowhere.key",
  });
  assertEquals((await access.credential()).keyPair?.cert, client.cert);
  const anonymous = home.access(HTTPS, {}, {
    contexts: [{ name: "main", context: { cluster: "c" } }],
  });
  assertEquals(await anonymous.credential(), {});
  assertEquals(anonymous.authority(), undefined);
  const inherited = home.access(HTTPS, { ["__proto__"]: { token: "t" } });
  assertEquals(await inherited.credential(), {});
});

Deno.test("what is not supported is refused by name", () => {
  using home = new KubeFolder();
  const exec = { apiVersion: V1, command: "x" };
  // deno-fmt-ignore: a case is a line.
  const cases: readonly (readonly [words: string, cluster: object, user?: object])[] = [
    ["insecure-skip-tls-verify: it is not supported", { "insecure-skip-tls-verify": true }],
    ["name the server as its certificate does (server: https://other", { "tls-server-name": "other" }],
    ["wanted https://", { server: "http://api.example" }],
    ["wanted https://", { server: "" }],
    ["auth-provider: it is not supported", {}, { "auth-provider": {} }],
    ["as: it is not supported", {}, { as: "admin" }],
    ["API servers take no passwords", {}, { username: "u" }],
    ["only one of a client certificate", {}, { "client-key-data": "QQ==" }],
    ["certificate-authority-data: it is not base64", { "certificate-authority-data": "%" }],
    ["it has both exec and a token", {}, { token: "t", exec }],
  ];
  for (const [words, cluster, user] of cases) {
    assertThrows(
      () => home.access({ ...HTTPS, ...cluster }, user),
      NeighbourConfigError,
      words,
    );
  }
});

Deno.test("tls-server-name that says what the address says anyway is fine", () => {
  using home = new KubeFolder();
  home.access({ ...HTTPS, "tls-server-name": "api.example" });
});

Deno.test("a file that leads nowhere says where it stops", () => {
  using home = new KubeFolder();
  const config = `${home.folder}/config`;
  const load = () => kubeconfigAccess(config, home.clock);
  assertThrows(load, NeighbourConfigError, "there is no such file");
  home.write("config", "a: [");
  assertThrows(load, NeighbourConfigError, "it is not YAML");
  home.write("config", "[]");
  assertThrows(load, NeighbourConfigError, "wanted a map");
  home.write("config", "{}");
  assertThrows(load, NeighbourConfigError, "names no current-context");
  assertThrows(
    () => home.access(HTTPS, {}, { clusters: [] }),
    NeighbourConfigError,
    'clusters: none has the name "c"',
  );
  assertThrows(
    () => home.access(HTTPS, {}, { "current-context": "prod" }),
    NeighbourConfigError,
    'contexts: none has the name "prod"',
  );
});

// --- Plugins ---------------------------------------------------------------------

function plugin(home: KubeFolder, script: string, exec: object = {}) {
  home.write(
    "plugin",
    `#!/bin/sh\necho run >>${home.folder}/runs\n${script}`,
    0o700,
  );
  return home.access(HTTPS, {
    exec: { apiVersion: V1, command: "./plugin", ...exec },
  });
}

function printing(status: object, apiVersion = V1): string {
  const answer = { apiVersion, kind: "ExecCredential", status };
  return `echo '${JSON.stringify(answer)}'`;
}

function runs(home: KubeFolder): number {
  return Deno.readTextFileSync(`${home.folder}/runs`).split("\n").length - 1;
}

Deno.test("a plugin runs once until what it said expires or is rejected", async () => {
  using home = new KubeFolder();
  const access = plugin(home, printing({ token: "t" }));
  const both = await Promise.all([access.credential(), access.credential()]);
  assertEquals(both, Array(2).fill({ authorization: "Bearer t" }));
  await access.credential();
  assertEquals(runs(home), 1);
  access.rejected();
  await access.credential();
  assertEquals(runs(home), 2);
});

Deno.test("a plugin's answer that has expired is asked for again", async () => {
  using home = new KubeFolder();
  const expirationTimestamp = "2020-01-01T00:00:00Z";
  const access = plugin(home, printing({ token: "t", expirationTimestamp }));
  await access.credential();
  await access.credential();
  assertEquals(runs(home), 2);
});

Deno.test("a plugin is told its arguments, its environment and the cluster", async () => {
  using home = new KubeFolder();
  const access = plugin(
    home,
    `echo "$KUBERNETES_EXEC_INFO|$1|$WHO" >${home.folder}/told\n` +
      printing({ clientCertificateData: "c", clientKeyData: "k" }),
    {
      args: ["login"],
      env: [{ name: "WHO", value: "me" }],
      provideClusterInfo: true,
    },
  );
  assertEquals(await access.credential(), { keyPair: { cert: "c", key: "k" } });
  const reported = Deno.readTextFileSync(`${home.folder}/told`).trim().split(
    "|",
  );
  assertEquals(reported.slice(1), ["login", "me"]);
  assertEquals(JSON.parse(reported[0]!), {
    kind: "ExecCredential",
    apiVersion: V1,
    spec: {
      interactive: false,
      cluster: { server: "https://api.example:6443", config: null },
    },
  });
});

Deno.test("a plugin that fails is quoted", async () => {
  using home = new KubeFolder();
  const fails = async (script: string, words: string, exec: object = {}) => {
    const access = plugin(home, script, exec);
    await assertRejects(
      () => access.credential(),
      NeighbourConfigError,
      words,
    );
  };
  await fails("echo no luck >&2; exit 3", "it ended with 3: no luck");
  await fails("echo hello", "it printed no JSON");
  await fails(printing({}), "neither a token nor a certificate");
  await fails(
    printing({ token: "t" }, "client.authentication.k8s.io/v1beta1"),
    'apiVersion: saw "client.authentication.k8s.io/v1beta1"',
  );
  await fails("", "get it from example.com", {
    command: "/nowhere/plugin",
    installHint: "get it from example.com",
  });
});

Deno.test("a plugin that needs a person, or another language, is refused", () => {
  using home = new KubeFolder();
  const refused = (exec: object, words: string) =>
    assertThrows(() => plugin(home, "", exec), NeighbourConfigError, words);
  refused({ interactiveMode: "Always" }, "there is no person to ask");
  refused({ apiVersion: "client.authentication.k8s.io/v1alpha1" }, "wanted");
  refused({ command: "" }, "command: it is empty");
});

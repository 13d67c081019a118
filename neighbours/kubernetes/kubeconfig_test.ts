import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import { FakeTimers } from "../../tests/support/memory/fake_timers.ts";
import { REREAD_MS } from "./access.ts";
import { KubernetesConfigError } from "./errors.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";

/** A folder with a kubeconfig of these three maps, and files beside it. */
class Home implements Disposable {
  readonly folder = Deno.makeTempDirSync();
  readonly clock = new FakeTimers();

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
    return kubeconfigAccess(`${this.folder}/config`, { clock: this.clock });
  }

  write(name: string, text: string, mode = 0o600): void {
    Deno.writeTextFileSync(`${this.folder}/${name}`, text, { mode });
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.folder, { recursive: true });
  }
}

const HTTPS = { server: "https://api.example:6443/" };

Deno.test("server, namespace, CA and token come from the current context", async () => {
  using home = new Home();
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
  using home = new Home();
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
  using home = new Home();
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
});

Deno.test("what is not supported is refused by name", () => {
  using home = new Home();
  const refused = (words: string, cluster: object, user?: object) =>
    assertThrows(
      () => home.access({ ...HTTPS, ...cluster }, user),
      KubernetesConfigError,
      words,
    );
  refused("insecure-skip-tls-verify: it is not supported", {
    "insecure-skip-tls-verify": true,
  });
  refused("name the server as its certificate does (server: https://other", {
    "tls-server-name": "other",
  });
  refused("wanted https://", { server: "http://api.example" });
  refused("wanted https://", { server: "" });
  refused("auth-provider: it is not supported", {}, { "auth-provider": {} });
  refused("as: it is not supported", {}, { as: "admin" });
  refused("API servers take no passwords", {}, { username: "u" });
  refused("only one of a client certificate", {}, {
    "client-key-data": "QQ==",
  });
  refused("certificate-authority-data: it is not base64", {
    "certificate-authority-data": "%",
  });
  refused("it has both exec and a token", {}, {
    token: "t",
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "x",
    },
  });
});

Deno.test("tls-server-name that says what the address says anyway is fine", () => {
  using home = new Home();
  home.access({ ...HTTPS, "tls-server-name": "api.example" });
});

Deno.test("a file that leads nowhere says where it stops", () => {
  using home = new Home();
  const config = `${home.folder}/config`;
  const load = () => kubeconfigAccess(config, { clock: home.clock });
  assertThrows(load, KubernetesConfigError, "there is no such file");
  home.write("config", "a: [");
  assertThrows(load, KubernetesConfigError, "it is not YAML");
  home.write("config", "[]");
  assertThrows(load, KubernetesConfigError, "wanted a map");
  home.write("config", "{}");
  assertThrows(load, KubernetesConfigError, "names no current-context");
  assertThrows(
    () => home.access(HTTPS, {}, { clusters: [] }),
    KubernetesConfigError,
    'clusters: none has the name "c"',
  );
  assertThrows(
    () => kubeconfigAccess(config, { clock: home.clock, context: "prod" }),
    KubernetesConfigError,
    'contexts: none has the name "prod"',
  );
});

// --- Plugins ---------------------------------------------------------------------

const V1 = "client.authentication.k8s.io/v1";

function plugin(home: Home, script: string, exec: object = {}) {
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

function runs(home: Home): number {
  return Deno.readTextFileSync(`${home.folder}/runs`).split("\n").length - 1;
}

Deno.test("a plugin runs once until what it said expires or is rejected", async () => {
  using home = new Home();
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
  using home = new Home();
  const expirationTimestamp = "2020-01-01T00:00:00Z";
  const access = plugin(home, printing({ token: "t", expirationTimestamp }));
  await access.credential();
  await access.credential();
  assertEquals(runs(home), 2);
});

Deno.test("a plugin is told its arguments, its environment and the cluster", async () => {
  using home = new Home();
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
  using home = new Home();
  const fails = async (script: string, words: string, exec: object = {}) => {
    const access = plugin(home, script, exec);
    await assertRejects(
      () => access.credential(),
      KubernetesConfigError,
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
  using home = new Home();
  const refused = (exec: object, words: string) =>
    assertThrows(() => plugin(home, "", exec), KubernetesConfigError, words);
  refused({ interactiveMode: "Always" }, "there is nobody to ask");
  refused({ apiVersion: "client.authentication.k8s.io/v1alpha1" }, "wanted");
  refused({ command: "" }, "command: it is empty");
});

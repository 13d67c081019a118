import { assertEquals, assertThrows } from "@std/assert";
import { UsageError } from "./usage_error.ts";
import { ETCD_FLAGS, etcdOptions, etcdPrefix } from "./etcd_flags.ts";
import { readFlags } from "./read_flags.ts";

const FILES: Readonly<Record<string, string>> = {
  "password": "a secret \n",
  "go-etcd.json": JSON.stringify({
    cluster: {
      leader: "http://10.0.0.1:4001",
      machines: ["http://10.0.0.1:4001", "http://10.0.0.2:4001"],
    },
    config: { certFile: "", keyFile: "", caCertFile: [], timeout: 1 },
  }),
  "go-etcd-tls.json": JSON.stringify({
    cluster: { machines: ["https://10.0.0.1"] },
    config: { certFile: "a.crt", keyFile: "a.key", caCertFile: ["ca.crt"] },
  }),
  "half.json": '{"cluster": {"machines": ["x"]}, "config": {"keyFile": "k"}}',
  "empty.json": '{"cluster": {"machines": []}}',
  "list.json": '{"cluster": [1]}',
  "broken.json": "{",
};

const sources = (argv: readonly string[]) => ({
  argv,
  environment: () => undefined,
  readFile: (path: string) => {
    const text = FILES[path];
    if (text === undefined) throw new Error("No such file or directory");
    return text;
  },
});

function options(...argv: string[]) {
  const from = sources(argv);
  return etcdOptions(readFlags("service", ETCD_FLAGS, from).values, from);
}

const NO_TLS = { cert: undefined, key: undefined, ca: undefined };

Deno.test("without flags there is no etcd", () => {
  assertEquals(options(), undefined);
});

Deno.test("members, files and a user are taken together", () => {
  assertEquals(options("--etcd=a,b:1", "--etcd=http://c"), {
    servers: ["a", "b:1", "http://c"],
    tls: NO_TLS,
  });
  const files = ["--etcd-cert=c", "--etcd-key=k", "--etcd-ca-cert=ca"];
  const user = ["--etcd-user=edge", "--etcd-password-file=password"];
  assertEquals(options("--etcd=a", ...files, ...user), {
    servers: ["a"],
    tls: { cert: "c", key: "k", ca: "ca" },
    user: { name: "edge", password: "a secret " },
  });
});

Deno.test("go-etcd's file says where etcd is", () => {
  assertEquals(options("--etcd-config=go-etcd.json"), {
    servers: ["http://10.0.0.1:4001", "http://10.0.0.2:4001"],
    tls: NO_TLS,
  });
  assertEquals(options("--etcd-config=go-etcd-tls.json"), {
    servers: ["https://10.0.0.1"],
    tls: { cert: "a.crt", key: "a.key", ca: ["ca.crt"] },
  });
});

Deno.test("what does not go together is refused", () => {
  const refusals: readonly (readonly [words: string, ...argv: string[]])[] = [
    ["wanted --etcd", "--etcd-ca-cert=ca"],
    ["--etcd-key belongs to it", "--etcd=a", "--etcd-cert=c"],
    ["--etcd-password-file belongs to it", "--etcd=a", "--etcd-user=u"],
    ["--etcd-user belongs to it", "--etcd=a", "--etcd-password-file=password"],
    ["No such file", "--etcd=a", "--etcd-user=u", "--etcd-password-file=no"],
    ["keep one of them", "--etcd=a", "--etcd-config=go-etcd.json"],
    ["No such file", "--etcd-config=no"],
    ["it is not JSON", "--etcd-config=broken.json"],
    ["cluster: saw a list, wanted a map", "--etcd-config=list.json"],
    ["cluster.machines: there is none", "--etcd-config=empty.json"],
    ["belong together", "--etcd-config=half.json"],
  ];
  for (const [words, ...argv] of refusals) {
    assertThrows(() => options(...argv), UsageError, words);
  }
});

Deno.test("a prefix ends with a slash, and is not all there is", () => {
  const prefix = (...argv: string[]) =>
    etcdPrefix(readFlags("service", ETCD_FLAGS, sources(argv)).values);
  assertEquals(prefix(), "/tunnel/");
  assertEquals(prefix("--etcd-prefix=/edge"), "/edge/");
  assertThrows(() => prefix("--etcd-prefix=/"), UsageError, "wanted one");
});

import { assertEquals, assertThrows } from "@std/assert";
import type { StoreLocation } from "../../neighbours/store/store_connection.ts";
import { readFlags } from "./read_flags.ts";
import { STATE_COMMAND_FLAGS, stateKey, stateLocation } from "./state_flags.ts";
import { UsageError } from "./usage_error.ts";

function read(...argv: string[]) {
  const sources = {
    argv,
    environment: () => undefined,
    readFile: () => "secret\n",
  };
  const { values } = readFlags("token", STATE_COMMAND_FLAGS, sources);
  const location = stateLocation(values, { stateDirectory: "/s" }, sources);
  return { values, location };
}

Deno.test("--state says where servers have their state in common", () => {
  const cases: readonly (readonly [argv: string[], location: StoreLocation])[] =
    [
      [[], { kind: "directory", root: "/s" }],
      [["--state=/nfs/tunnel"], { kind: "directory", root: "/nfs/tunnel" }],
      [["--state=etcd://a:1"], {
        kind: "etcd",
        prefix: "/tunnel/state/",
        etcd: { servers: ["http://a:1"], tls: {} },
      }],
      [["--state=etcds://a:1,[::1]:2/edge/one", "--etcd-ca-cert=/ca"], {
        kind: "etcd",
        prefix: "/edge/one/",
        etcd: {
          servers: ["https://a:1", "https://[::1]:2"],
          tls: { cert: undefined, key: undefined, ca: "/ca" },
        },
      }],
      [
        ["--state=etcd://a", "--etcd-user=u", "--etcd-password-file=/p"],
        {
          kind: "etcd",
          prefix: "/tunnel/state/",
          etcd: {
            servers: ["http://a"],
            tls: {},
            user: { name: "u", password: "secret" },
          },
        },
      ],
      [["--state=kubernetes"], { kind: "kubernetes", kubernetes: {} }],
      [["--state=kubernetes:edge", "--kubeconfig=/k"], {
        kind: "kubernetes",
        kubernetes: { kubeconfig: "/k" },
        namespace: "edge",
      }],
    ];
  for (const [argv, location] of cases) {
    assertEquals(read(...argv).location, location, argv.join(" "));
  }
});

Deno.test("--state refuses what is no place, in one line", () => {
  const cases: readonly (readonly [argv: string[], words: string])[] = [
    [["--state=etcd://"], "wanted etcd://HOST:PORT"],
    [["--state=etcd://u:p@a:1"], "wanted etcd://HOST:PORT"],
    [["--state=etcd://a:1/b//c"], "wanted a prefix such as /tunnel/state/"],
    [["--state=etcd://a:1/b c"], "wanted a prefix"],
    [["--state=kubernetes:A_b"], "wanted a namespace"],
    [["--state=redis://a"], "wanted a directory, etcd://HOST:PORT, etcds://"],
    [["--state=etcd:/a:1"], "wanted a directory, etcd://HOST:PORT, etcds://"],
    [["--state=etcd"], "wanted a directory, etcd://HOST:PORT, etcds://"],
    [["--state=etcd://a", "--etcd-ca-cert=/ca"], "wanted etcds://"],
    [["--state=etcds://a", "--etcd-cert=/c"], "--etcd-key belongs to it"],
    [["--etcd-ca-cert=/ca"], "nothing is in etcd"],
    [["--state=kubernetes", "--etcd-user=u"], "nothing is in etcd"],
  ];
  for (const [argv, words] of cases) {
    assertThrows(() => read(...argv), UsageError, words, argv.join(" "));
  }
});

Deno.test("keys of a CA go to etcd or Kubernetes only encrypted, or when said so", () => {
  const keyOf = (...argv: string[]) => {
    const { values, location } = read(...argv);
    return stateKey(values, location);
  };
  assertEquals(keyOf(), undefined);
  assertEquals(keyOf("--state-key-file=/k"), { kind: "file", path: "/k" });
  const etcd = "--state=etcd://a";
  assertThrows(() => keyOf(etcd), UsageError, "--state-key-file FILE");
  assertThrows(() => keyOf("--state=kubernetes"), UsageError, "kubernetes as");
  assertEquals(keyOf(etcd, "--state-key-file=none"), { kind: "none" });
});

import { assertEquals, assertThrows } from "@std/assert";
import type { KubeletOptions } from "../../server/options.ts";
import { UsageError } from "../flags/usage_error.ts";
import { kubeletOptions } from "./kubelet.ts";
import { readFlags } from "../flags/read_flags.ts";
import { SERVER_FLAGS } from "./flags.ts";
import { words } from "../../tests/support/program/command_line.ts";

function options(...argv: string[]): KubeletOptions | undefined {
  return kubeletOptions(readFlags("server", SERVER_FLAGS, words(argv)));
}

const LEAST = [
  "--kubelet-port=10263",
  "--kubelet-server-ca-cert=callers.crt",
  "--kubelet-ca-file=kubelets.crt",
];

Deno.test("kubeletOptions() opens no port unless one is named", () => {
  assertEquals(options(), undefined);
  assertEquals(options("--kubeconfig=k"), undefined);
});

Deno.test("kubeletOptions() takes the rest from the frontends and agents", () => {
  const least = {
    address: { hostname: "", port: 10263 },
    callerCaFile: "callers.crt",
    kubeletCaFile: "kubelets.crt",
    localhostPorts: [],
  };
  assertEquals(options(...LEAST), least);
  const frontends = [
    "--server-cert=f.crt",
    "--server-key=f.key",
    "--server-ca-cert=f-ca.crt",
  ];
  assertEquals(options(LEAST[0]!, LEAST[2]!, ...frontends), {
    ...least,
    keyPair: { certFile: "f.crt", keyFile: "f.key" },
    callerCaFile: "f-ca.crt",
  });
});

Deno.test("kubeletOptions() reads everything that can be said", () => {
  assertEquals(
    options(
      "--kubelet-port=0",
      "--kubelet-bind-address=127.0.0.1",
      "--kubelet-server-cert=s.crt",
      "--kubelet-server-key=s.key",
      "--kubelet-server-ca-cert=callers.crt",
      "--kubelet-client-certificate=c.crt",
      "--kubelet-client-key=c.key",
      "--kubelet-insecure-skip-verify",
      "--kubelet-localhost-ports=10250,10255",
      "--kubelet-lookup",
      "--kubeconfig=k.yaml",
    ),
    {
      address: { hostname: "127.0.0.1", port: 0 },
      keyPair: { certFile: "s.crt", keyFile: "s.key" },
      callerCaFile: "callers.crt",
      clientKeyPair: { certFile: "c.crt", keyFile: "c.key" },
      localhostPorts: [10250, 10255],
      lookups: { kubeconfig: "k.yaml" },
    },
  );
  assertEquals(options(...LEAST, "--kubelet-lookup")?.lookups, {});
  assertEquals(
    options(LEAST[0]!, LEAST[1]!, "--kubelet-certificate-authority=x")
      ?.kubeletCaFile,
    "x",
  );
});

// deno-fmt-ignore: the columns are the point.
const REFUSED: readonly [name: string, argv: readonly string[], words: string][] = [
  ["no CA of callers",            [LEAST[0]!, LEAST[2]!],                         "--kubelet-server-ca-cert"],
  ["no CA of kubelets",           LEAST.slice(0, 2),                              "--kubelet-insecure-skip-verify"],
  ["a CA that is not looked at",  [...LEAST, "--kubelet-insecure-skip-verify"],   "remove one of them"],
  ["a certificate without a key", [...LEAST, "--kubelet-client-certificate=c"],   "--kubelet-client-key"],
  ["a key without a certificate", [...LEAST, "--kubelet-server-key=c"],           "--kubelet-server-cert"],
  ["a port that is none",         [...LEAST, "--kubelet-localhost-ports=10250,x"], '"x"'],
  ["flags without the port",      ["--kubelet-lookup"],                           "without --kubelet-port"],
];

for (const [name, argv, words] of REFUSED) {
  Deno.test(`kubeletOptions() refuses ${name}`, () => {
    assertThrows(() => options(...argv), UsageError, words);
  });
}

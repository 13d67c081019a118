import { assertEquals, assertThrows } from "@std/assert";
import { NO_IDENTIFIERS } from "../../proto/peer/identifiers.ts";
import { UsageError } from "../flags/usage_error.ts";
import { readFlags } from "../flags/read_flags.ts";
import { YURTTUNNEL_AGENT_FLAGS } from "./flags.ts";
import { yurttunnelAgentOptions } from "./options.ts";

function read(
  argv: readonly string[],
  variables: Readonly<Record<string, string>> = {},
) {
  const environment = (name: string) => variables[name];
  const sources = { argv, environment, readFile: () => "" };
  const reading = readFlags(
    "yurttunnel-agent",
    YURTTUNNEL_AGENT_FLAGS,
    sources,
  );
  return yurttunnelAgentOptions(reading, environment);
}

const NODE = ["--node-name=edge1", "--node-ip=10.0.0.7"];

Deno.test("a node's name and address are enough", () => {
  const { agent, kubernetes } = read(NODE);
  assertEquals(agent.agentId, "edge1");
  assertEquals(agent.identifiers, {
    ...NO_IDENTIFIERS,
    host: ["edge1"],
    ipv4: ["10.0.0.7"],
  });
  assertEquals(agent.health, { hostname: "127.0.0.1", port: 10266 });
  assertEquals([agent.server.addresses, agent.dials.allowUnix], [[], []]);
  const { api, bootstrap, certificate, discovery } = kubernetes;
  assertEquals(api, { kubeconfig: "/etc/kubernetes/kubelet.conf" });
  assertEquals(bootstrap, undefined);
  assertEquals(certificate.directory, "/var/lib/yurttunnel-agent/pki");
  assertEquals(certificate.component, "yurttunnel-agent");
  const { spec } = certificate;
  assertEquals(
    [spec.commonName, spec.organizations, spec.dnsNames, spec.ipAddresses],
    ["tunnel-agent-client", ["openyurt:yurttunnel"], ["edge1"], ["10.0.0.7"]],
  );
  assertEquals(discovery, {
    namespace: "kube-system",
    name: "x-tunnel-server-svc",
    portName: "tcp",
    isInside: false,
  });
});

Deno.test("the environment says what the flags do not", () => {
  const variables = {
    NODE_NAME: "edge2",
    NODE_IP: "fd00::7",
    POD_IP: "fd00::8",
    KUBERNETES_SERVICE_HOST: "10.96.0.1",
  };
  const { agent, kubernetes } = read([], variables);
  assertEquals(agent.identifiers, {
    ...NO_IDENTIFIERS,
    host: ["edge2"],
    ipv6: ["fd00::7"],
  });
  assertEquals(agent.health.hostname, "::1");
  assertEquals(kubernetes.certificate.spec.ipAddresses, ["fd00::8"]);
  assertEquals(kubernetes.discovery?.isInside, true);
  assertEquals(read(NODE, variables).agent.agentId, "edge1");
});

Deno.test("identifiers are taken with commas and with ampersands", () => {
  const wanted = { ...NO_IDENTIFIERS, host: ["a"], ipv4: ["10.0.0.9"] };
  for (const text of ["host=a&ipv4=10.0.0.9", "host=a, ipv4=10.0.0.9"]) {
    const { agent } = read([...NODE, `--agent-identifiers=${text}`]);
    assertEquals(agent.identifiers, wanted);
  }
  assertThrows(
    () => read([...NODE, "--agent-identifiers=hots=a"]),
    UsageError,
    "it must be one of host",
  );
});

Deno.test("servers may be named, and then no Service is asked", () => {
  const { agent, kubernetes } = read([
    ...NODE,
    "--tunnelserver-addr=a.example:10262,[fd00::1]:443",
    "--tunnelserver-name=tunnel-server",
    "--ca-cert=ca.crt",
  ]);
  assertEquals(agent.server.addresses, [
    { host: "a.example", port: 10262 },
    { host: "fd00::1", port: 443 },
  ]);
  assertEquals(agent.server.caFile, "ca.crt");
  const { discovery, serverName, caFile } = kubernetes;
  assertEquals([discovery, serverName, caFile], [
    undefined,
    "tunnel-server",
    "ca.crt",
  ]);
});

Deno.test("the API server is where the kubeconfig says, or at an address", () => {
  const api = (...argv: string[]) => read([...NODE, ...argv]).kubernetes.api;
  assertEquals(api("--kube-config=k"), { kubeconfig: "k" });
  assertEquals(api("--kubeconfig=k", "--apiserver-addr=a:1"), {
    kubeconfig: "k",
  });
  const apiServer = { host: "api.example", port: 6443 };
  assertEquals(api("--apiserver-addr=api.example:6443"), { apiServer });
  assertEquals(api("--apiserver-addr=https://api.example:6443/"), {
    apiServer,
  });
  const { bootstrap } = read([...NODE, "--bootstrap-kubeconfig=b"]).kubernetes;
  assertEquals(bootstrap, { kubeconfig: "b" });
});

Deno.test("what cannot be used is refused in one line", () => {
  const refusals: [string[], string][] = [
    [["--node-ip=10.0.0.7"], "--node-name is not given, nor $NODE_NAME"],
    [["--node-name=edge1"], "--node-ip is not given, nor $NODE_IP"],
    [["--node-name=Edge 1", "--node-ip=10.0.0.7"], 'saw "Edge 1"'],
    [["--node-name=edge1", "--node-ip=here"], "wanted an IP address"],
    [[...NODE, "--tunnelserver-addr=a"], "wanted HOST:PORT"],
    [[...NODE, "--tunnelserver-service=svc"], "wanted NAMESPACE/NAME:PORT"],
    [[...NODE, "--apiserver-addr=a"], "wanted HOST:PORT"],
  ];
  for (const [argv, words] of refusals) {
    assertThrows(() => read(argv), UsageError, words);
  }
});

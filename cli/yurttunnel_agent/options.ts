/**
 * Flags of `tunnel yurttunnel-agent` to {@linkcode AgentOptions} and to the
 * requests to the cluster.
 *
 * @module
 */

import type { KubernetesIdentityOptions } from "../../agent/identity/cluster/kubernetes_identity.ts";
import type { DiscoveryOptions } from "../../agent/identity/cluster/service_discovery.ts";
import type { AgentOptions } from "../../agent/options.ts";
import type { KubernetesOptions } from "../../neighbours/kubernetes/connect.ts";
import {
  AGENT_SUBJECT,
  API_CLIENT_SIGNER,
  CLIENT_USAGES,
} from "../../neighbours/kubernetes/csr.ts";
import {
  type Identifiers,
  IdentifiersError,
  parseIdentifiers,
} from "../../proto/peer/identifiers.ts";
import { canonicalIp, parseIpAddress } from "../../proto/peer/ip_address.ts";
import { orMistake, unusable, UsageError } from "../flags/usage_error.ts";
import { parseHostPort } from "../flags/addresses.ts";
import { AGENT_FLAGS, rulesOf } from "../agent/flags.ts";
import type { FlagReading } from "../flags/read_flags.ts";
import type { YURTTUNNEL_AGENT_FLAGS } from "./flags.ts";
import { given } from "../../platform/documents/given.ts";

/** A kubelet's own, which has the rights that are needed. */
const KUBELET_KUBECONFIG = "/etc/kubernetes/kubelet.conf";

/**
 * It is renewed long before; an agent that was away for longer requests a new
 * one.
 */
const CERTIFICATE_SECONDS = 7 * 24 * 3600;

/** A node's name: RFC 1123's subdomains. */
const NODE_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;

type Values = FlagReading<typeof YURTTUNNEL_AGENT_FLAGS>["values"];

/** The result of the flags. */
export interface YurttunnelAgentOptions {
  readonly agent: AgentOptions;
  readonly kubernetes: KubernetesIdentityOptions;
}

/**
 * Combines and checks.
 *
 * @param environment Values without a flag: `POD_IP`, and whether this is a
 *   Pod.
 * @throws {UsageError} One line.
 */
export function yurttunnelAgentOptions(
  { values }: FlagReading<typeof YURTTUNNEL_AGENT_FLAGS>,
  environment: (name: string) => string | undefined,
): YurttunnelAgentOptions {
  const name = nodeName(values);
  const ip = address("--node-ip", values["node-ip"], "$NODE_IP");
  const podIp = environment("POD_IP") ?? "";
  const certificateIp = podIp === "" ? ip : address("$POD_IP", podIp, "it");
  const servers = values["tunnelserver-addr"]
    .map((text) => parseHostPort("--tunnelserver-addr", text));
  const metaHost = values["meta-host"] ||
    (ip.includes(":") ? "::1" : "127.0.0.1");
  const caFile = values["ca-cert"];
  const rules = rulesOf(values);
  const bootstrap = values["bootstrap-kubeconfig"];
  const isPod = (environment("KUBERNETES_SERVICE_HOST") ?? "") !== "";
  return {
    agent: {
      agentId: name,
      identifiers: identifiers(values, name, ip),
      server: {
        addresses: servers,
        caFile,
        alpnProtocols: AGENT_FLAGS["alpn-proto"].fallback,
        links: AGENT_FLAGS["links"].fallback,
        keepaliveMs: AGENT_FLAGS["keepalive-time"].fallback,
      },
      sync: {
        intervalCapMs: AGENT_FLAGS["sync-interval-cap"].fallback,
        forever: false,
      },
      dials: given({
        timeoutMs: AGENT_FLAGS["dial-timeout"].fallback,
        rules: rules && (() => rules),
        allowUnix: [],
        hasBenchTarget: AGENT_FLAGS["bench-target"].fallback,
      }),
      drainTimeoutMs: AGENT_FLAGS["drain-timeout"].fallback,
      health: { hostname: metaHost, port: values["meta-port"] },
      adminAccess: { socket: values["admin-socket"] },
      messageBytesMax: AGENT_FLAGS["message-size-limit"].fallback,
    },
    kubernetes: given({
      api: apiServer(values),
      bootstrap: bootstrap === "" ? undefined : { kubeconfig: bootstrap },
      certificate: {
        directory: values["cert-dir"],
        component: "yurttunnel-agent",
        spec: {
          signerName: API_CLIENT_SIGNER,
          usages: CLIENT_USAGES,
          ...AGENT_SUBJECT,
          dnsNames: [name],
          ipAddresses: [certificateIp],
          expirationSeconds: CERTIFICATE_SECONDS,
        },
      },
      caFile: caFile || undefined,
      serverName: values["tunnelserver-name"] || undefined,
      discovery: servers.length > 0
        ? undefined
        : { ...discovery(values), isInside: isPod },
    }),
  };
}

function nodeName(values: Values): string {
  const name = values["node-name"];
  if (NODE_NAME.test(name)) return name;
  throw new UsageError(
    name === ""
      ? "Cannot tell which node this is: --node-name is not given, nor " +
        "$NODE_NAME; give one of them"
      : `Cannot use --node-name: saw "${name}", wanted a node's name: ` +
        "lower-case letters, digits, - and .",
  );
}

function address(what: string, text: string, other: string): string {
  if (parseIpAddress(text) !== undefined) return canonicalIp(text);
  throw new UsageError(
    text === ""
      ? `Cannot tell this node's address: ${what} is not given, nor ${other}; ` +
        "give one of them"
      : `Cannot use ${what}: saw "${text}", wanted an IP address`,
  );
}

/**
 * yurttunnel's own agent checks text between commas and sends text between
 * ampersands, so both separators are in use.
 */
function identifiers(values: Values, name: string, ip: string): Identifiers {
  const family = ip.includes(":") ? "ipv6" : "ipv4";
  const text = values["agent-identifiers"] || `${family}=${ip}&host=${name}`;
  return orMistake(
    [IdentifiersError],
    () => parseIdentifiers(text.replaceAll(/\s*,\s*/g, "&"), "flag"),
    (message) =>
      `Cannot use --agent-identifiers: saw "${text}", wanted key=value pairs ` +
      `joined by & or commas. ${message}`,
  );
}

function apiServer(values: Values): KubernetesOptions {
  const kubeconfig = values["kube-config"];
  if (kubeconfig !== "") return { kubeconfig };
  const text = values["apiserver-addr"].replace(/^https:\/\/|\/$/g, "");
  if (text === "") return { kubeconfig: KUBELET_KUBECONFIG };
  return { apiServer: parseHostPort("--apiserver-addr", text) };
}

function discovery(values: Values): Omit<DiscoveryOptions, "isInside"> {
  const text = values["tunnelserver-service"];
  const match = /^([-a-z0-9]+)\/([-a-z0-9]+):([-a-z0-9]+)$/.exec(text);
  if (match === null) {
    const wanted = "NAMESPACE/NAME:PORT, such as " +
      "kube-system/x-tunnel-server-svc:tcp";
    throw unusable("--tunnelserver-service", text, wanted);
  }
  const [, namespace, name, portName] = match;
  return { namespace: namespace!, name: name!, portName: portName! };
}

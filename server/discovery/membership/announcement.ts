/**
 * Which services of an agent's announcement are accepted: those that its node
 * may offer, at addresses that are the node's own. Pure.
 *
 * The announcing agent dials an address itself, so the address has that agent's
 * meaning: the loopback of its machine, its own identifiers, or an address that
 * a policy grants its node. Any node may use any name unless a policy restricts
 * it. A service of another source of the catalog stays that source's, even if
 * an agent announces it.
 *
 * @module
 */

import { quoted } from "../../../proto/peer/quoted.ts";
import {
  DEFAULT_NAMESPACE,
  keyOf,
  NO_AFFINITY,
  NO_POLICY,
  type Protocol,
} from "../../../services/catalog/model/model.ts";
import {
  canonicalAddress,
  checkService,
} from "../../../services/catalog/model/validate.ts";
import { effectiveAddress, provenNames } from "../../../policy/subject.ts";
import {
  ANNOUNCED_SERVICES_MAX,
  ANNOUNCED_TEXT_LENGTH_MAX,
  announcedName,
} from "../../../proto/link/control_messages.ts";
import type {
  AnnouncedService,
  ServiceRefusal,
} from "../../../proto/link/link_messages.ts";
import {
  isLoopback,
  isLoopbackHost,
  parseIpPrefix,
  prefixContains,
} from "../../../proto/peer/ip_address.ts";
import type { Identifiers } from "../../../proto/peer/identifiers.ts";
import type { Policy } from "../../policy/policy.ts";
import type { LinkPeer } from "../../../proto/link/link.ts";

/** One port of a service as an agent serves it. Frozen. */
export interface OfferedName {
  /** `namespace/name` of the service. */
  readonly service: string;
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  /** Empty: unknown. */
  readonly appProtocol: string;
  /** Canonical. */
  readonly address: string;
  readonly targetPort: number;
}

/** What agents may announce. */
export interface AnnouncementRules {
  /** Whether anonymous agents may link: they may not announce anything. */
  readonly letsAnonymous: boolean;
  readonly policy: Pick<Policy, "grantsOf" | "mayOffer">;
}

/** The decision about an announcement. */
export interface AnnouncementDecision {
  readonly offers: readonly OfferedName[];
  readonly refused: readonly ServiceRefusal[];
}

/** See the module description. */
export function authorizeAnnouncement(
  peer: LinkPeer,
  services: readonly AnnouncedService[],
  rules: AnnouncementRules,
): AnnouncementDecision {
  const offers = new Map<string, OfferedName>();
  const refused: ServiceRefusal[] = [];
  const whole = problemOfAgent(peer, rules);
  for (const [index, service] of services.entries()) {
    const problem = index >= ANNOUNCED_SERVICES_MAX ? TOO_MANY : whole;
    const decision = problem ?? authorizeOne(peer, service, rules);
    if (typeof decision === "string") {
      refused.push({ service: announcedName(service), reason: decision });
      // One reason is reported for all that follow: there may be thousands.
      if (decision === TOO_MANY) break;
      continue;
    }
    offers.set(offerKey(decision), decision);
  }
  return { offers: Object.freeze([...offers.values()]), refused };
}

const TOO_MANY = `only ${ANNOUNCED_SERVICES_MAX} services of one agent are ` +
  "taken; this one and what follows is left out";

/** Why an agent's whole announcement is refused. */
function problemOfAgent(
  { agentId, identity }: LinkPeer,
  { letsAnonymous }: AnnouncementRules,
): string | undefined {
  if (letsAnonymous && identity.kind === "anonymous") {
    return "the agent showed no certificate, and this server lets everybody " +
      "be an agent; join the node";
  }
  // Proxies name the agent by it to the server.
  const canBeNamed = /^[\x21-\x7e]+$/.test(agentId) &&
    agentId.length <= ANNOUNCED_TEXT_LENGTH_MAX;
  return canBeNamed
    ? undefined
    : "the agent's id cannot be named in a dial: visible ASCII is wanted, " +
      `${ANNOUNCED_TEXT_LENGTH_MAX} characters at most; set --agent-id`;
}

/** @returns The accepted services, or why not. */
function authorizeOne(
  peer: LinkPeer,
  announced: AnnouncedService,
  rules: AnnouncementRules,
): OfferedName | string {
  const { name, port, appProtocol, host, targetPort } = announced;
  const namespace = announced.namespace || DEFAULT_NAMESPACE;
  const protocol = announced.protocol || "tcp";
  if (protocol !== "tcp" && protocol !== "udp") {
    return `its protocol is ${quoted(protocol)}, tcp or udp is wanted`;
  }
  if (!APP_PROTOCOL.test(appProtocol)) {
    return `${quoted(appProtocol)} is no application protocol`;
  }
  const problem = checkService({
    namespace,
    name,
    ports: [{ name: "", port, protocol }],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  });
  if (problem !== undefined) return problem;
  if (name.includes(".")) {
    return `${quoted(name)} has a dot, and could be taken for a service of ` +
      "another namespace";
  }
  if (!Number.isInteger(targetPort) || targetPort < 1 || targetPort > 65_535) {
    return `its target's port is ${targetPort}, 1 to 65535 is wanted`;
  }
  const node = provenNames(peer.identity)?.[0] ?? "";
  const service = keyOf({ namespace, name });
  if (!rules.policy.mayOffer(node, service)) {
    return `no rule of the server lets ${node || "this agent"} announce ` +
      `${service}; add it to services of its nodes entry in the policy file`;
  }
  const address = canonicalAddress(host);
  if (address === undefined) {
    return `${quoted(host)} is no address: an IP address or a host name is ` +
      "wanted";
  }
  if (!isOwn(address, peer, rules.policy.grantsOf(node))) {
    return `${quoted(host)} is not the agent's own: 127.0.0.1, or an address ` +
      "that it announces (--agent-identifiers), or that a nodes entry of the " +
      "policy file grants it";
  }
  return Object.freeze({
    service,
    namespace,
    name,
    port,
    protocol,
    appProtocol,
    address,
    targetPort,
  });
}

/** Kubernetes' rule: letters, digits, and the characters that join names. */
const APP_PROTOCOL = /^[A-Za-z0-9./_-]{0,63}$/;

/** One agent serves one port of a service at one address once. */
function offerKey(offer: OfferedName): string {
  const { service, port, protocol, address, targetPort } = offer;
  return `${service} ${port}/${protocol} ${address} ${targetPort}`;
}

function isOwn(
  address: string,
  { identifiers }: LinkPeer,
  granted: Identifiers,
): boolean {
  if (isLoopbackHost(address)) return true;
  const ip = effectiveAddress(address);
  // The kernel takes the unspecified address for loopback.
  if (ip !== undefined && isLoopback(ip)) return true;
  const { host, ipv4, ipv6, cidr } = identifiers;
  const own = [...host, ...ipv4, ...ipv6, ...granted.ipv4, ...granted.ipv6];
  if (own.includes(address)) return true;
  if (ip === undefined) return false;
  return [...cidr, ...granted.cidr].some((text) => {
    const prefix = parseIpPrefix(text);
    return prefix !== undefined && prefixContains(prefix, ip);
  });
}

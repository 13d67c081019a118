/**
 * Flags of `tunnel proxy`: kube-proxy 0.4's by their names, and ours.
 *
 * @module
 */

import {
  DIAL_TIMEOUTS_MS,
  PORT_RANGE,
  SERVICE_DRAIN_MS,
  UDP_IDLE_MS,
} from "../../agent/proxy/defaults.ts";
import { BALANCES } from "../../catalog/model/model.ts";
import { API_SERVER_FLAGS } from "./api_server_flags.ts";
import { CATALOG_FLAGS } from "./catalog_flags.ts";
import { CONNECTION_FLAGS } from "./connection_flags.ts";
import { DISCOVERY_CLIENT_FLAGS } from "./discovery_client_flags.ts";
import {
  booleanFlag,
  choiceFlag,
  durationFlag,
  type Flag,
  FlagValueError,
  parsedFlag,
  portFlag,
  textFlag,
} from "./flag.ts";
import { parseGoDuration, parseWholeNumber } from "./go_values.ts";
import { HANDOVER_FLAGS } from "./handover_flags.ts";
import { GENERAL_FLAGS, KLOG_FLAGS, LOG_FLAGS } from "./log_flags.ts";
import { PROXY_ADMIN_PORT } from "./proxy_admin_port.ts";
import { RELAY_FLAGS } from "./relay_flags.ts";
import { ROAD_ONLY_FLAGS } from "./road_flags.ts";

const LOCAL = "Local addresses";
const ENDPOINTS = "Endpoints";
const OPERATION = "Operation";

/** More tries than that, and a client has gone elsewhere. */
const TRIES_MAX = 16;

const { config: _holdsFlags, ...GENERAL } = GENERAL_FLAGS;

export const PROXY_FLAGS = {
  ...CATALOG_FLAGS,
  ...API_SERVER_FLAGS,
  ...DISCOVERY_CLIENT_FLAGS,
  "bind-address": textFlag("127.0.0.1", {
    group: LOCAL,
    placeholder: "ADDRESS",
    help:
      "Where services are served that do not say it. kube-proxy: 0.0.0.0, " +
      "which lets everybody in who reaches this machine.",
  }),
  "local-addresses": choiceFlag(["ports", "original", "virtual-ips"], "ports", {
    group: LOCAL,
    help:
      "ports: each port of a service gets one of --port-range, always the " +
      "same one. original: the service's own, as kube-proxy has it. " +
      "virtual-ips: each service gets an address of --virtual-range and keeps " +
      "its ports.",
  }),
  "port-range": portRangeFlag(PORT_RANGE),
  "virtual-range": textFlag("127.100.0.0/16", {
    group: LOCAL,
    placeholder: "PREFIX",
    help: "Addresses for services, inside 127.0.0.0/8.",
  }),
  "catalog-copies": textFlag("", {
    group: OPERATION,
    placeholder: "DIRECTORY",
    help:
      "Keep here what sources of services other than files said last, for " +
      "a start while they are away; none: keep nothing.",
    defaultText: "/var/lib/tunnel/proxy/catalog-PORT for root, else " +
      "~/.local/state/tunnel/proxy/catalog-PORT; PORT is --admin-port",
  }),
  "address-file": textFlag("", {
    group: LOCAL,
    placeholder: "FILE",
    help: "Keep here where services are found, so that two whose names make " +
      "the same address do not swap at a restart; none: keep nothing.",
    defaultText: "/var/lib/tunnel/proxy/addresses-PORT for root, else " +
      "~/.local/state/tunnel/proxy/addresses-PORT; PORT is --admin-port",
  }),
  "print-env": booleanFlag(false, {
    group: LOCAL,
    help: "Print where services are as environment variables " +
      "(WEB_SERVICE_HOST, WEB_SERVICE_PORT), and end.",
  }),
  "print-hosts": booleanFlag(false, {
    group: LOCAL,
    help: "Print where services are as lines of /etc/hosts, and end.",
  }),
  "check": booleanFlag(false, {
    group: LOCAL,
    help: "Read all sources once, say what is wrong, serve nothing, and end " +
      "with 0 or 1.",
  }),
  "dns-listen": textFlag("", {
    group: LOCAL,
    placeholder: "HOST:PORT",
    help:
      "Answer over DNS where services are, such as web.default.svc.tunnel " +
      "and _http._tcp.web.default.svc.tunnel; over UDP and TCP.",
  }),
  "balance": choiceFlag(BALANCES, "round-robin", {
    group: ENDPOINTS,
    help: "How an endpoint is chosen for services that do not say it.",
  }),
  "zone": textFlag("", {
    group: ENDPOINTS,
    placeholder: "NAME",
    help: "Where this machine is: services that want it get endpoints of the " +
      "same zone first.",
  }),
  "node-name": textFlag("", {
    group: ENDPOINTS,
    placeholder: "NAME",
    environment: ["NODE_NAME"],
    help: "What this machine is called in the cluster: services that want it " +
      "get endpoints of the same node first.",
    defaultText: "of the identity that --discovery is followed as",
  }),
  "dial-timeouts": dialTimeoutsFlag(),
  "udp-idle": durationFlag(UDP_IDLE_MS, 100, {
    group: ENDPOINTS,
    aliases: ["udp-timeout"],
    help: "A UDP session is over after so long without a datagram.",
  }),
  ...CONNECTION_FLAGS,
  ...ROAD_ONLY_FLAGS,
  ...RELAY_FLAGS,
  "admin-bind-address": textFlag("127.0.0.1", {
    group: OPERATION,
    placeholder: "ADDRESS",
    help: "Address for /healthz, /readyz, /metrics and /debug/proxy.",
  }),
  "admin-port": portFlag(PROXY_ADMIN_PORT, {
    group: OPERATION,
    help: "Its port.",
  }),
  "service-drain": durationFlag(SERVICE_DRAIN_MS, 0, {
    group: OPERATION,
    help: "How long connections may go on when their service is removed. " +
      "kube-proxy: for ever.",
  }),
  "drain-timeout": durationFlag(30_000, 0, {
    group: OPERATION,
    help: "How long connections may go on after SIGTERM, or after another " +
      "process has taken over. 0: end at once.",
  }),
  ...HANDOVER_FLAGS,
  ...GENERAL,
  ...LOG_FLAGS,
  ...KLOG_FLAGS,
} as const;

function portRangeFlag(
  fallback: { readonly first: number; readonly last: number },
): Flag<{ readonly first: number; readonly last: number }> {
  return parsedFlag(fallback, (text) => {
    const match = /^(\d+)-(\d+)$/.exec(text);
    const [first, last] = [match?.[1], match?.[2]]
      .map((part) => parseWholeNumber(part ?? "") ?? 0);
    if (first! < 1 || last! > 65_535 || first! > last!) {
      throw new FlagValueError("wanted a range of ports such as 20000-29999");
    }
    return { first: first!, last: last! };
  }, {
    group: LOCAL,
    placeholder: "FIRST-LAST",
    help: "Ports for services.",
    defaultText: `${fallback.first}-${fallback.last}`,
  });
}

function dialTimeoutsFlag(): Flag<readonly number[]> {
  return parsedFlag(DIAL_TIMEOUTS_MS, (text) => {
    const list = text.split(",").map((part) => parseGoDuration(part.trim()));
    const isGood = list.length <= TRIES_MAX &&
      list.every((ms) => ms !== undefined && ms >= 1 && ms < 2 ** 31);
    if (isGood) return list as number[];
    throw new FlagValueError(
      `wanted 1 to ${TRIES_MAX} durations such as 250ms,500ms,1s,2s`,
    );
  }, {
    group: ENDPOINTS,
    placeholder: "DURATION,…",
    help:
      "Limit on connecting, of the first, second … endpoint that is tried " +
      "for a connection. The last one that is left gets the last of them.",
    defaultText: "250ms,500ms,1s,2s",
  });
}

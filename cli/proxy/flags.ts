/**
 * Flags of `tunnel proxy`: kube-proxy 0.4's by their names, and ours.
 *
 * @module
 */

import {
  CONNECTION_DEFAULTS,
  DIAL_TIMEOUTS_MS,
  PORT_RANGE,
  SERVICE_DRAIN_MS,
  UDP_IDLE_MS,
} from "../../agent/proxy/defaults.ts";
import { BALANCES, ENDPOINT_ENDS } from "../../catalog/model/model.ts";
import { API_SERVER_FLAGS } from "../flags/api_server_flags.ts";
import { CATALOG_FLAGS } from "../flags/catalog_flags.ts";
import { DISCOVERY_CLIENT_FLAGS } from "./discovery.ts";
import {
  booleanFlag,
  choiceFlag,
  countFlag,
  durationFlag,
  type Flag,
  FlagValueError,
  parsedFlag,
  portFlag,
  textFlag,
} from "../flags/flag.ts";
import { parseWholeNumber } from "../flags/go_values.ts";
import { parseGoDuration } from "../../platform/documents/go_duration.ts";
import { HANDOVER_FLAGS } from "../flags/handover_flags.ts";
import { GENERAL_FLAGS, KLOG_FLAGS, LOG_FLAGS } from "../flags/log_flags.ts";
import { PROXY_ADMIN_PORT } from "./query.ts";
import { RELAY_FLAGS } from "../flags/relay_flags.ts";
import { ROAD_ONLY_FLAGS } from "../flags/road_flags.ts";

const LOCAL = "Local addresses";
const ENDPOINTS = "Endpoints";
const CONNECTIONS = "Connections";
const OPERATION = "Operation";

const DEFAULTS = CONNECTION_DEFAULTS;

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
  "on-endpoint-removed": choiceFlag(
    ENDPOINT_ENDS,
    DEFAULTS.onEndpointRemoved,
    {
      group: CONNECTIONS,
      help: "What becomes of TCP connections when their endpoint is removed.",
    },
  ),
  "on-endpoint-down": choiceFlag(ENDPOINT_ENDS, DEFAULTS.onEndpointDown, {
    group: CONNECTIONS,
    help: "And when it is unready, or ill by its health check while another " +
      "one is well.",
  }),
  "endpoint-drain": durationFlag(DEFAULTS.endpointDrainMs, 1, {
    group: CONNECTIONS,
    help: "How long those may go on that are drained.",
  }),
  "idle-timeout": durationFlag(DEFAULTS.idleTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "Reset a TCP connection after so long without a byte. 0: never.",
  }),
  "half-closed-timeout": durationFlag(DEFAULTS.halfClosedTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "The same, of one of which one side has ended. 0: never.",
  }),
  "user-timeout": durationFlag(DEFAULTS.userTimeoutMs, 0, {
    group: CONNECTIONS,
    help: "Give a TCP peer up that acknowledges or takes nothing of what " +
      "waits for it for so long (TCP_USER_TIMEOUT). 0: as the kernel does.",
  }),
  "ejection-failures": countFlag(DEFAULTS.ejection.failures, 0, 1_000, {
    group: CONNECTIONS,
    help: "Dials that fail in a row before an endpoint is left out. 0: it " +
      "never is.",
  }),
  "ejection-time": durationFlag(DEFAULTS.ejection.timeMs, 1, {
    group: CONNECTIONS,
    help: "And for how long it is.",
  }),
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

/**
 * Flags of `tunnel proxy`: kube-proxy 0.4's by their names, and ours.
 *
 * @module
 */

import {
  ADMIN_ACCESS_FLAGS,
  GENERAL_FLAGS,
  HANDOVER_FLAGS,
  LOG_FLAGS,
  WORKERS_FLAG,
} from "../flags/program_flags.ts";
import { ACCESS_LOG_FLAGS, AUDIT_FLAGS } from "../flags/access_log_flags.ts";
import {
  CONNECTION_DEFAULTS,
  DIAL_TIMEOUTS_MS,
  PORT_RANGE,
  SERVICE_DRAIN_MS,
  UDP_IDLE_MS,
} from "../../services/proxy/defaults.ts";
import { BALANCES, ENDPOINT_ENDS } from "../../services/catalog/model/model.ts";
import { API_SERVER_FLAGS, CATALOG_FLAGS } from "../flags/catalog_flags.ts";
import { DISCOVERY_CLIENT_FLAGS } from "./discovery.ts";
import {
  common,
  type Flag,
  flag,
  FlagValueError,
  inGroup,
} from "../flags/flag.ts";
import { parseWholeNumber } from "../flags/go_values.ts";
import { parseGoDuration } from "../../platform/documents/go_duration.ts";
import { KLOG_FLAGS } from "../flags/idle_flags.ts";
import { PROXY_ADMIN_PORT } from "../flags/admin_flags.ts";
import { RELAY_FLAGS } from "../flags/relay_flags.ts";
import { EARLY_DATA_FLAG, ROUTE_ONLY_FLAGS } from "../flags/route_flags.ts";

const DEFAULTS = CONNECTION_DEFAULTS;

/** More tries than that, and a client has gone elsewhere. */
const TRIES_MAX = 16;

const { config: _holdsFlags, ...GENERAL } = GENERAL_FLAGS;

const LOCAL_FLAGS = inGroup("Local addresses", {
  "bind-address": common(flag.text("127.0.0.1", {
    placeholder: "ADDRESS",
    help: "Address of services that name none. kube-proxy: 0.0.0.0, which " +
      "admits everyone who reaches this machine.",
  })),
  "local-addresses": flag.choice(
    ["ports", "original", "virtual-ips"],
    "ports",
    {
      help: "ports: each port of a service gets a port of --port-range, " +
        "always the same one. original: the service keeps its own, as in " +
        "kube-proxy. virtual-ips: each service gets an address of " +
        "--virtual-range and keeps its ports.",
    },
  ),
  "port-range": portRangeFlag(PORT_RANGE),
  "virtual-range": flag.text("127.100.0.0/16", {
    placeholder: "PREFIX",
    help: "Range of addresses for services, inside 127.0.0.0/8.",
  }),
  "address-file": common(flag.word("FILE", {
    help: "Keep the addresses of services in this file, so that two " +
      "services whose names give the same address do not swap at a " +
      "restart; none: keep nothing.",
    defaultText: "/var/lib/tunnel/proxy/addresses-PORT for root, else " +
      "~/.local/state/tunnel/proxy/addresses-PORT; PORT is --admin-port",
  })),
  "print-env": flag.boolean(false, {
    help: "Print the addresses of services as environment variables " +
      "(WEB_SERVICE_HOST, WEB_SERVICE_PORT), and exit.",
  }),
  "print-hosts": flag.boolean(false, {
    help: "Print the addresses of services as lines of /etc/hosts, and exit.",
  }),
  "check": common(flag.boolean(false, {
    help: "Read all sources once, report what is wrong, serve nothing, and " +
      "exit with 0 or 1.",
  })),
  "dns-listen": flag.word("HOST:PORT", {
    help: "Answer DNS queries about services, such as " +
      "web.default.svc.tunnel and _http._tcp.web.default.svc.tunnel, " +
      "over UDP and TCP.",
  }),
});

const OPERATION_FLAGS = inGroup("Operation", {
  "catalog-copies": flag.word("DIRECTORY", {
    help: "Keep copies here of what remote sources of services last said, " +
      "for a start while they are unreachable; none: keep nothing.",
    defaultText: "/var/lib/tunnel/proxy/catalog-PORT for root, else " +
      "~/.local/state/tunnel/proxy/catalog-PORT; PORT is --admin-port",
  }),
  "admin-bind-address": flag.text("127.0.0.1", {
    placeholder: "ADDRESS",
    help: "Address for /healthz, /readyz, /metrics and /debug/proxy.",
  }),
  "admin-port": common(
    flag.port(PROXY_ADMIN_PORT, "Port of the admin endpoint."),
  ),
  ...ADMIN_ACCESS_FLAGS,
  "service-drain": flag.duration(SERVICE_DRAIN_MS, 0, {
    help: "How long connections may continue after their service is " +
      "removed. kube-proxy: forever.",
  }),
  "drain-timeout": flag.duration(30_000, 0, {
    help: "How long connections may continue after SIGTERM, or after " +
      "another process has taken over. 0: end at once.",
  }),
});

const ENDPOINTS_FLAGS = inGroup("Endpoints", {
  "balance": flag.choice(BALANCES, "round-robin", {
    help: "How to choose an endpoint, for services that do not say it.",
  }),
  "zone": flag.word("NAME", {
    help: "Zone of this machine: services that ask for it prefer endpoints " +
      "of the same zone.",
  }),
  "node-name": flag.word("NAME", {
    environment: ["NODE_NAME"],
    help: "Name of this machine in the cluster: services that ask for it " +
      "prefer endpoints of the same node.",
    defaultText: "of the identity that --discovery is followed as",
  }),
  ...EARLY_DATA_FLAG,
  "dial-timeouts": dialTimeoutsFlag(),
  "udp-idle": flag.duration(UDP_IDLE_MS, 100, {
    aliases: ["udp-timeout"],
    help: "A UDP session ends after this long without a datagram.",
  }),
});

const CONNECTIONS_FLAGS = inGroup("Connections", {
  "on-endpoint-removed": flag.choice(
    ENDPOINT_ENDS,
    DEFAULTS.onEndpointRemoved,
    {
      help: "What to do with TCP connections when their endpoint is removed.",
    },
  ),
  "on-endpoint-down": flag.choice(ENDPOINT_ENDS, DEFAULTS.onEndpointDown, {
    help: "What to do with them when their endpoint is unready, or fails " +
      "its health check while another one is healthy.",
  }),
  "endpoint-drain": flag.duration(DEFAULTS.endpointDrainMs, 1, {
    help: "How long drained connections may continue.",
  }),
  "idle-timeout": flag.duration(DEFAULTS.idleTimeoutMs, 0, {
    help: "Reset a TCP connection after this long without a byte. 0: never.",
  }),
  "half-closed-timeout": flag.duration(DEFAULTS.halfClosedTimeoutMs, 0, {
    help: "The same, for a connection that one side has closed. 0: never.",
  }),
  "user-timeout": flag.duration(DEFAULTS.userTimeoutMs, 0, {
    help: "Give up a TCP peer that acknowledges or accepts no data for this " +
      "long (TCP_USER_TIMEOUT). 0: the kernel decides.",
  }),
  "ejection-failures": flag.count(DEFAULTS.ejection.failures, 0, 1_000, {
    help: "Failed dials in a row before an endpoint is ejected. 0: never.",
  }),
  "ejection-time": flag.duration(DEFAULTS.ejection.timeMs, 1, {
    help: "How long an endpoint stays ejected.",
  }),
});

export const PROXY_FLAGS = {
  ...CATALOG_FLAGS,
  ...API_SERVER_FLAGS,
  ...DISCOVERY_CLIENT_FLAGS,
  ...LOCAL_FLAGS,
  ...ENDPOINTS_FLAGS,
  ...CONNECTIONS_FLAGS,
  ...ROUTE_ONLY_FLAGS,
  ...RELAY_FLAGS,
  ...OPERATION_FLAGS,
  ...ACCESS_LOG_FLAGS,
  ...AUDIT_FLAGS,
  ...WORKERS_FLAG,
  ...HANDOVER_FLAGS,
  ...GENERAL,
  ...LOG_FLAGS,
  ...KLOG_FLAGS,
} as const;

function portRangeFlag(
  fallback: { readonly first: number; readonly last: number },
): Flag<{ readonly first: number; readonly last: number }> {
  return flag.parsed(fallback, (text) => {
    const match = /^(\d+)-(\d+)$/.exec(text);
    const [first, last] = [match?.[1], match?.[2]]
      .map((part) => parseWholeNumber(part ?? "") ?? 0);
    if (first! < 1 || last! > 65_535 || first! > last!) {
      throw new FlagValueError("wanted a range of ports such as 20000-29999");
    }
    return { first: first!, last: last! };
  }, {
    placeholder: "FIRST-LAST",
    help: "Ports for services.",
    defaultText: `${fallback.first}-${fallback.last}`,
  });
}

function dialTimeoutsFlag(): Flag<readonly number[]> {
  return flag.parsed(DIAL_TIMEOUTS_MS, (text) => {
    const list = text.split(",").map((part) => parseGoDuration(part.trim()));
    const isGood = list.length <= TRIES_MAX &&
      list.every((ms) => ms !== undefined && ms >= 1 && ms < 2 ** 31);
    if (isGood) return list as number[];
    throw new FlagValueError(
      `wanted 1 to ${TRIES_MAX} durations such as 250ms,500ms,1s,2s`,
    );
  }, {
    placeholder: "DURATION,…",
    help:
      "Limit on connecting to the first, second … endpoint that is tried for " +
      "a connection. The last endpoint that is left gets the last limit.",
    defaultText: "250ms,500ms,1s,2s",
  });
}

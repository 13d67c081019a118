/**
 * `tunnel service register`: writes endpoints of a service into etcd for as long
 * as it runs.
 *
 * @module
 */

import { withCode } from "../proto/codes/codes.ts";
import { hostPort } from "../proto/peer/host_port.ts";
import {
  AGENT_KEYS,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  keyFrom,
  NO_AFFINITY,
  NO_POLICY,
  type Via,
  WEIGHT_MAX,
} from "../services/catalog/model/model.ts";
import {
  REGISTERED_ENDPOINTS_MAX,
  Registration,
} from "../services/catalog/registration.ts";
import {
  canonicalAddress,
  checkEndpoints,
  checkService,
} from "../services/catalog/model/validate.ts";
import { connectEtcd } from "../neighbours/etcd/connect.ts";
import { surviveInternalErrors } from "../platform/log/internal_error_log.ts";
import { systemTimers } from "../platform/time/system_timers.ts";
import { type CommandContext, defineCommand } from "./program/command.ts";
import { refusingConfig } from "./program/sources.ts";
import { spokenLog } from "./program/process_context.ts";
import { parseHostPort } from "./flags/addresses.ts";
import { ETCD_FLAGS, etcdOptions, etcdPrefix } from "./flags/etcd_flags.ts";
import { flag, inGroup } from "./flags/flag.ts";
import type { FlagReading } from "./flags/read_flags.ts";
import type { Running } from "../net/program/program.ts";
import { untilStopped } from "./program/until_stopped.ts";
import { unusable, UsageError } from "./flags/usage_error.ts";
import { readVerb } from "./program/verbs.ts";

const WHAT_FLAGS = inGroup("The endpoints", {
  "endpoint": flag.list([], {
    placeholder: "ADDRESS:PORT,…",
    help: "Address and port of an endpoint of the service.",
  }),
  "port-name": flag.word("NAME", {
    help: "Name of the service's port, when it has several.",
  }),
  "service-port": flag.port(0, {
    help: "Write the service as well, with this port, unless it exists.",
    defaultText: "another program writes the service",
  }),
  "protocol": flag.choice(["tcp", "udp"], "tcp", "Protocol of that port."),
  "node": flag.text("", "Node of the endpoints."),
  "zone": flag.text("", "Zone of the endpoints."),
  "weight": flag.count(DEFAULT_WEIGHT, 1, WEIGHT_MAX, {
    help: "Share of the load, where endpoints are weighted.",
  }),
  "via": flag.text("direct", {
    placeholder: "WAY",
    help: "direct, agent, or which agent: host=NODE, uid=ID, cidr=RANGE, " +
      "id=AGENT.",
  }),
  "ttl": flag.duration(15_000, 3_000, {
    help: "How long the endpoints remain after this program has died.",
  }),
});

const FLAGS = {
  ...WHAT_FLAGS,
  ...ETCD_FLAGS,
} as const;

type Values = FlagReading<typeof FLAGS>["values"];

/** See the module description. */
export const SERVICE_COMMAND = defineCommand({
  name: "service",
  operands: "register [NAMESPACE/]NAME --endpoint ADDR:PORT --etcd URL",
  about: [
    "Writes the endpoints under a lease and renews it until it is " +
    "interrupted; then they are taken away at once. When this program dies " +
    "they end with the lease, and when etcd loses the lease they are written " +
    "again. The keys are described in docs/services.md.",
  ],
  examples: [
    "tunnel service register db --endpoint 10.0.0.7:5432 --service-port 5432 \\",
    "  --etcd http://10.0.0.1:2379",
    "tunnel service register shop/web --endpoint 10.0.0.7:8080 \\",
    "  --via host=edge-7 --etcd https://etcd.example --etcd-ca-cert ca.crt",
  ],
  rights: "network",
  flags: FLAGS,
  async run(reading, context) {
    const { values } = reading;
    const verbs = { register: { operand: "NAME" } } as const;
    const { operand } = readVerb("service", verbs, reading);
    const registrant = readRegistrant(operand, values);
    const etcd = etcdOptions(values, context);
    if (etcd === undefined) {
      throw new UsageError(
        "Cannot register without etcd: wanted --etcd, such as " +
          "--etcd=http://10.0.0.1:2379",
      );
    }
    const prefix = etcdPrefix(values);
    const client = refusingConfig(() => connectEtcd(etcd, systemTimers));
    using _net = surviveInternalErrors(spokenLog("service register", context));
    const ttlSeconds = Math.ceil(values["ttl"] / 1_000);
    await untilStopped(
      startRegistration(
        { ...registrant, client, prefix, ttlSeconds },
        context,
      ),
    );
  },
});

type Options = ConstructorParameters<typeof Registration>[0];

type Registrant = Pick<Options, "service" | "endpoints" | "servicePort">;

/** How long etcd may take to remove the endpoints. */
const GOODBYE_MS = 5_000;

/** A registration that reports to the user, and its end. */
function startRegistration(
  options: Registrant & Pick<Options, "client" | "prefix" | "ttlSeconds">,
  { print, printError }: CommandContext,
): Running {
  const { service, endpoints, client } = options;
  const places = endpoints.map(({ address, ports }) =>
    hostPort(address, ports[0]!.port)
  );
  const complain = (line: string) => {
    const coded = withCode(line, "TUN802");
    printError(`tunnel service register: ${coded}\n`);
  };
  const registration = new Registration({
    ...options,
    timers: systemTimers,
    random: Math.random,
    onHeld: (lease) =>
      print(
        `${service} is registered at ${places.join(", ")}, lease ${lease}\n`,
      ),
    onLost: () => complain("the lease was lost; getting another one"),
    onProblem: ({ message }, retryMs) =>
      complain(`${message}; next try in ${Math.ceil(retryMs)} ms`),
  });
  const finished = Promise.withResolvers<void>();
  let isOver = false;
  const end = () => {
    isOver = true;
    client[Symbol.dispose]();
    finished.resolve();
  };
  const endUntold = (problem: string) => {
    if (isOver) return;
    complain(`${problem}; the endpoints end with their lease`);
    end();
  };
  registration.start();
  return {
    finished: finished.promise,
    shutdown() {
      const silent = () => endUntold("etcd does not answer");
      const late = systemTimers.after(GOODBYE_MS, silent);
      registration.stop().then(end, (error) => endUntold(error.message))
        .finally(() => late.cancel());
    },
    stop: end,
    reload() {
      // Certificates are read again for each connection.
    },
  };
}

/** @throws {UsageError} One line. */
function readRegistrant(name: string, values: Values): Registrant {
  const service = keyFrom(name);
  const portName = values["port-name"];
  const places = values["endpoint"];
  if (places.length === 0 || places.length > REGISTERED_ENDPOINTS_MAX) {
    throw new UsageError(
      `Cannot register ${places.length} endpoints: wanted 1 to ` +
        `${REGISTERED_ENDPOINTS_MAX}, such as --endpoint=10.0.0.7:5432`,
    );
  }
  const endpoints = places.map((place): Endpoint => {
    const { host, port } = parseHostPort("--endpoint", place);
    const address = canonicalAddress(host);
    if (address === undefined) {
      throw unusable("--endpoint", host, "an IP address or a host name");
    }
    return {
      address,
      ports: [{ name: portName, port }],
      state: "ready",
      weight: values["weight"],
      via: viaOf(values["via"]),
      ...values["node"] === "" ? {} : { node: values["node"] },
      ...values["zone"] === "" ? {} : { zone: values["zone"] },
    };
  });
  const port = values["service-port"];
  const { protocol } = values;
  const servicePort = { name: portName, port, protocol };
  const problem = checkEndpoints({ service, endpoints }) ??
    (port === 0 ? undefined : problemOf(service, servicePort));
  if (problem !== undefined) {
    throw new UsageError(`Cannot register: ${problem}`);
  }
  return { service, endpoints, ...port === 0 ? {} : { servicePort } };
}

function problemOf(
  key: string,
  port: NonNullable<Registrant["servicePort"]>,
): string | undefined {
  const [namespace = "", name = ""] = key.split("/");
  const ports = [port];
  const affinity = NO_AFFINITY;
  return checkService({ namespace, name, ports, affinity, policy: NO_POLICY });
}

function viaOf(text: string): Via {
  if (text === "direct") return DIRECT;
  if (text === "agent") return { kind: "agent" };
  const [word, value = ""] = text.split("=", 2);
  const key = AGENT_KEYS.find((known) => known === word);
  if (key !== undefined && value !== "") {
    return { kind: "agent", agent: { key, value } };
  }
  const wanted = "direct, agent, host=NODE, uid=ID, cidr=RANGE or id=AGENT";
  throw unusable("--via", text, wanted);
}

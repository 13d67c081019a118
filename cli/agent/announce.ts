/**
 * `--announce`: what a node serves for others.
 *
 * @module
 */

import { withoutBrackets } from "../../proto/peer/host_port.ts";
import {
  DEFAULT_NAMESPACE,
  NO_AFFINITY,
  NO_POLICY,
  type Protocol,
} from "../../services/catalog/model/model.ts";
import {
  canonicalAddress,
  checkService,
} from "../../services/catalog/model/validate.ts";
import {
  ANNOUNCED_SERVICES_MAX,
  announcedName,
} from "../../proto/link/control_messages.ts";
import type { AnnouncedService } from "../../proto/link/link_messages.ts";
import { UsageError } from "../flags/usage_error.ts";
import {
  type Flag,
  flag,
  type FlagDetails,
  FlagValueError,
} from "../flags/flag.ts";

const FORM = "NAME[.NAMESPACE][:PORT]=HOST:PORT[/udp][,app=PROTOCOL], such " +
  "as web=127.0.0.1:8080 or dns.infra:53=127.0.0.1:5353/udp";

/**
 * A name, optionally a namespace and a port; a host; its port; its protocol.
 */
const ANNOUNCED =
  /^([^.:=\s]+)(?:\.([^.:=\s]+))?(?::(\d+))?=(\[[^\]\s]+\]|[^:\s]+):(\d+)(?:\/(tcp|udp))?(?:,\s*app=([^,=\s]+))?$/;

/**
 * A list of services. One text may hold several, as environment variables must:
 * a comma before `NAME=HOST:` begins the next one, `,app=` goes on.
 */
export function announceFlag(
  details: FlagDetails,
): Flag<readonly AnnouncedService[]> {
  return flag.parsedList(
    (text) => text.split(/,\s*(?=[^,=]+=[^,]*:)/).map(parseAnnounced),
    { placeholder: "SERVICE", ...details },
  );
}

/**
 * All that are announced together.
 *
 * @throws {UsageError} One line.
 */
export function announcedServices(
  services: readonly AnnouncedService[],
): readonly AnnouncedService[] {
  if (services.length > ANNOUNCED_SERVICES_MAX) {
    throw new UsageError(
      `Cannot use --announce: saw ${services.length} services, ` +
        `${ANNOUNCED_SERVICES_MAX} are allowed`,
    );
  }
  const texts = services.map((service) =>
    `${announcedName(service)} is there twice with ${service.host} and port ` +
    service.targetPort
  );
  const twice = texts.find((text, at) => texts.indexOf(text) !== at);
  if (twice === undefined) return services;
  throw new UsageError(`Cannot use --announce: ${twice}; remove one`);
}

function parseAnnounced(text: string): AnnouncedService {
  const match = ANNOUNCED.exec(text.trim());
  if (match === null) throw new FlagValueError(`wanted ${FORM}`);
  const [, name = "", namespace = DEFAULT_NAMESPACE, own, host = ""] = match;
  const [targetDigits = "", protocol = "tcp", appProtocol = ""] = match
    .slice(5);
  const targetPort = Number(targetDigits);
  const port = own === undefined ? targetPort : Number(own);
  const problem = checkService({
    namespace,
    name,
    ports: [
      { name: "", port, protocol: protocol as Protocol },
      // Checked as a port, too, so that both get the same message.
      { name: "target", port: targetPort, protocol: other(protocol) },
    ],
    affinity: NO_AFFINITY,
    policy: NO_POLICY,
  });
  if (problem !== undefined) throw new FlagValueError(`but ${problem}`);
  const address = canonicalAddress(withoutBrackets(host));
  if (address === undefined) {
    throw new FlagValueError(
      `but "${host}" is no address: an IP address or a host name is wanted`,
    );
  }
  return {
    name,
    namespace,
    port,
    protocol,
    appProtocol,
    host: address,
    targetPort,
  };
}

function other(protocol: string): Protocol {
  return protocol === "udp" ? "tcp" : "udp";
}

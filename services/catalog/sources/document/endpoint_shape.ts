/**
 * One endpoint of a catalog document, and by what agent it is reached.
 *
 * @module
 */

import {
  as,
  either,
  map,
  type MeaningOf,
  names,
  number,
  type Reading,
  type Shape,
  TEXT,
  word,
} from "../../../../platform/documents/shape.ts";
import type { DocumentPath } from "../../../../platform/documents/document_map.ts";
import { parseIpPrefix } from "../../../../proto/peer/ip_address.ts";
import {
  AGENT_KEYS,
  DEFAULT_WEIGHT,
  DIRECT,
  type Endpoint,
  type EndpointPort,
  type ServicePort,
  type Via,
  WEIGHT_MAX,
} from "../../model/model.ts";
import { canonicalAddress } from "../../model/validate.ts";
import { PORT } from "./policy_shape.ts";

/** `direct`, `agent`, or which agent: `{host: node1}`. */
const VIA: Shape<Via> = either([
  as(
    word(["direct", "agent"]),
    (kind): Via => kind === "direct" ? DIRECT : { kind },
  ),
  as(
    map({ uid: TEXT, host: TEXT, cidr: TEXT, id: TEXT }, { oneOf: AGENT_KEYS }),
    (agents, at): Via | undefined => {
      const key = AGENT_KEYS.find((key) => agents[key] !== undefined)!;
      const value = agents[key]!;
      const isNone = value === "" ||
        (key === "cidr" && parseIpPrefix(value) === undefined);
      return isNone
        ? at.say(`"${value}" names no agent`, key)
        : { kind: "agent", agent: { key, value } };
    },
  ),
]);

/** As it is written; what its ports mean depends on those of its service. */
export const ENDPOINT = map({
  address: as(
    TEXT,
    (given, at) =>
      canonicalAddress(given) ?? at.say(
        `"${given}" is neither an IP address nor a host name; ports go to port`,
      ),
  ),
  port: PORT,
  ports: names(PORT),
  state: word(["ready", "serving", "terminating", "unready"]),
  node: TEXT,
  zone: TEXT,
  weight: number(1, WEIGHT_MAX),
  via: VIA,
}, { required: { address: "wanted an IP address or a host name" } });

/**
 * What an endpoint is behind the ports of its service.
 *
 * @param inside Where it stands, from `at`.
 */
export function endpointOf(
  { state = "ready", node, zone, weight = DEFAULT_WEIGHT, ...given }: MeaningOf<
    typeof ENDPOINT
  >,
  of: readonly ServicePort[],
  at: Reading,
  ...inside: DocumentPath
): Endpoint | undefined {
  const ports = portsOf(given, of, at, ...inside);
  // Not `withoutAbsent`: of these there are tens of thousands.
  return ports && {
    address: given.address,
    ports,
    state,
    ...(node === undefined ? {} : { node }),
    ...(zone === undefined ? {} : { zone }),
    weight,
    via: given.via ?? DIRECT,
  };
}

/** Without a word about ports they are the service's own. */
function portsOf(
  { port, ports }: Pick<MeaningOf<typeof ENDPOINT>, "port" | "ports">,
  of: readonly ServicePort[],
  at: Reading,
  ...inside: DocumentPath
): readonly EndpointPort[] | undefined {
  if (port !== undefined) {
    if (ports !== undefined) {
      return at.say("there is ports as well", ...inside, "port");
    }
    const [only, ...others] = of;
    return only !== undefined && others.length === 0
      ? [{ name: only.name, port }]
      : at.say(
        "the service has several; wanted ports: {NAME: PORT}",
        ...inside,
        "port",
      );
  }
  if (ports === undefined) return of.map(({ name, port }) => ({ name, port }));
  const known = of.map(({ name }) => name);
  const unknown = ports.keys().find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const problem = `there is no such field; wanted one of ${known.join(", ")}`;
    return at.say(problem, ...inside, "ports", unknown);
  }
  return known.flatMap((name) => {
    const port = ports.get(name);
    return port === undefined ? [] : [{ name, port }];
  });
}

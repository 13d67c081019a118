/**
 * A service over UDP whose endpoints answer what they hear, behind a proxy.
 *
 * @module
 */

import type { ProxiedPort } from "../../../services/proxy/listeners/proxied_port.ts";
import type {
  Service,
  ServicePort,
} from "../../../services/catalog/model/model.ts";
import { endpoints, type ProxyRig, service } from "../rigs/proxy_rig.ts";

/** The service of these rigs. */
export const KEY = "default/echo";

/** A port of a service. */
export const udp = (name: string, port: number): ServicePort => ({
  name,
  port,
  protocol: "udp",
});

/** A service that answers what it receives. */
export const echo = (about: Partial<Omit<Service, "name">> = {}): Service =>
  service("echo", { ports: [udp("", 53)], ...about });

/** The same, on a local port that is given. */
export const at = (port: number): Service =>
  echo({ ports: [{ ...udp("", 53), listen: { port } }] });

/** Serves `echo` at `ports`. @returns Where. */
export function serveAt(
  rig: ProxyRig,
  ports: readonly number[],
  about: Partial<Omit<Service, "name">> = {},
): Promise<number> {
  rig.serves(echo(about), ports);
  return rig.listening(KEY);
}

/** Other endpoints take over. */
export const move = (rig: ProxyRig, ports: readonly number[]): void =>
  rig.sink.add({ endpoints: [endpoints("echo", ports)] });

/** The port that stands for it. */
export const portOf = (rig: ProxyRig): ProxiedPort =>
  rig.proxy.served.get(KEY)!.port;

/** Its sessions. */
export const loadOf = (rig: ProxyRig): number =>
  rig.proxy.served.get(KEY)!.proxy.load;

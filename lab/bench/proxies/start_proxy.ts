/**
 * Starts one process that serves a port and connects whoever comes with one of
 * several targets: ours or nginx.
 *
 * @module
 */

import { freePort } from "../../../tests/support/program/ports.ts";
import { ServiceProxyProcess } from "../../peers/service_proxy.ts";
import type { Workspace } from "../../../tests/support/program/workspace.ts";
import type { ContenderName } from "../metric.ts";
import { forwarded, startNginxHop } from "../tunnels/forwarders.ts";
import type { Tunnel } from "../tunnels/start_tunnel.ts";

/** Who can be measured as a proxy. */
export const PROXIES = ["ours", "nginx"] as const;

/** What a proxy is to do. */
export interface ProxyConfig {
  readonly workspace: Workspace;
  readonly protocol?: "tcp" | "udp";
  /** `ip:port` each. */
  readonly targets: readonly string[];
}

/** A proxy, and where it is found. */
export interface RunningProxy extends Tunnel {
  readonly port: number;
}

/** A port that nobody listens on refuses, which costs the generator a try. */
async function untilBound(port: number): Promise<void> {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  for (let isBound = false; !isBound;) {
    // Deno opens /proc to nobody with less than all permissions; `cat` may.
    const { stdout } = await new Deno.Command("cat", {
      args: ["/proc/net/udp"],
    }).output();
    isBound = new TextDecoder().decode(stdout).includes(local);
  }
}

/**
 * Starts the proxy of `name`; over TCP it may need a moment until it listens.
 *
 * @throws {TypeError} For who is none.
 */
export async function startProxy(
  name: ContenderName,
  { workspace, protocol = "tcp", targets }: ProxyConfig,
): Promise<RunningProxy> {
  const port = freePort();
  const listen = `127.0.0.1:${port}`;
  const start = async () => {
    switch (name) {
      case "ours": {
        const config = {
          ...{ name: "bench", protocol, listen: port, endpoints: targets },
        };
        const flags = ["--udp-idle=1h"];
        return (await ServiceProxyProcess.start(workspace, [config], flags))
          .child;
      }
      case "nginx":
        return await startNginxHop(workspace, { listen, targets, protocol });
      default:
        throw new TypeError(`${name} is no service proxy`);
    }
  };
  const child = await start();
  if (protocol === "udp") await untilBound(port);
  return { ...forwarded(listen, [child]), port };
}

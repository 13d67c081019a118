/**
 * Starts any contender's tunnel, anywhere, and waits until it carries.
 *
 * @module
 */

import type { ContenderName } from "../metric.ts";
import { generate, SpoiledRunError } from "../generator.ts";
import { findDebianProgram } from "../../peers/debian.ts";
import { findPeer } from "../../peers/peers.ts";
import { startDirect } from "./direct.ts";
import { startChisel, startFrp } from "./forwarders.ts";
import { startHaproxy } from "./haproxy.ts";
import { startNginx } from "./nginx.ts";
import type { Site, SiteConfig, Tunnel } from "./site.ts";
import { startSsh } from "./ssh.ts";
import { startWithFrontend } from "./with_frontend.ts";

const STARTERS: Readonly<
  Record<ContenderName, (site: Site, config: SiteConfig) => Promise<Tunnel>>
> = {
  "ours": (site, config) => startWithFrontend(site, config, "ours", "ours"),
  "ours-server": (site, config) =>
    startWithFrontend(site, config, "ours", "konnectivity"),
  "ours-agent": (site, config) =>
    startWithFrontend(site, config, "konnectivity", "ours"),
  "konnectivity": (site, config) =>
    startWithFrontend(site, config, "konnectivity", "konnectivity"),
  "frp": startFrp,
  "chisel": startChisel,
  "ssh": startSsh,
  "nginx": startNginx,
  "haproxy": startHaproxy,
  "direct": startDirect,
  "gcp-linear": noTunnel,
  "gcp-snapshot": noTunnel,
};

/** Nothing asks for it, since no metric of tunnels is for discovery servers. */
function noTunnel(): Promise<never> {
  return Promise.reject(new TypeError("a discovery server carries nothing"));
}

const reference = (): Promise<unknown> =>
  Promise.all([findPeer("xds-gcp"), findPeer("xds-adsload")]);

const konnectivity = (): Promise<unknown> =>
  Promise.all([
    findPeer("konnectivity-server"),
    findPeer("konnectivity-agent"),
  ]);

const PROGRAMS: Readonly<
  Record<ContenderName, () => Promise<unknown>>
> = {
  "ours": () => Promise.resolve(),
  "ours-server": konnectivity,
  "ours-agent": konnectivity,
  "konnectivity": konnectivity,
  "frp": () => Promise.all([findPeer("frps"), findPeer("frpc")]),
  "chisel": () => findPeer("chisel"),
  "ssh": () => findDebianProgram("sshd"),
  "nginx": () => findDebianProgram("nginx"),
  "haproxy": () => findDebianProgram("haproxy"),
  "direct": () => Promise.resolve(),
  "gcp-linear": reference,
  "gcp-snapshot": reference,
};

/**
 * Finds, builds or fetches what `name` needs, so that nothing of that happens
 * while others are measured.
 *
 * @throws {PeerMissingError} When something is not to be had.
 */
export async function preparePrograms(name: ContenderName): Promise<void> {
  await PROGRAMS[name]();
}

/**
 * A tunnel of `name` at `site`, after its first answered request.
 *
 * @throws {PeerMissingError} When its programs are neither here nor to be had.
 * @throws {SpoiledRunError} When it does not come to carry in 30 s.
 */
export async function startTunnel(
  name: ContenderName,
  site: Site,
  config: SiteConfig = { route: "connect-uds" },
): Promise<Tunnel> {
  const tunnel = await STARTERS[name](site, config);
  try {
    await generate({
      workspace: site.workspace,
      program: tunnel.generator,
      prefix: site.serverSide,
      flags: ["-mode=probe", "-d=30s", ...tunnel.flags],
      pieces: tunnel.pieces,
    });
  } catch (error) {
    const logs = await Promise.all(
      tunnel.pieces.map(async (each) =>
        `${each.name}: ${await each.logTail()}`
      ),
    );
    await tunnel.stop();
    throw new SpoiledRunError(`it does not carry: ${logs.join(" · ")}`, {
      cause: error,
    });
  }
  return tunnel;
}

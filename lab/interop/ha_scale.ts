/**
 * Upstream's end-to-end tests of high availability, as one scenario for every
 * way in which agents learn how many servers there are: both sides grow from two
 * to four and shrink to two again, and each end's gauges follow.
 *
 * @module
 */

import type {
  RunningAgent,
  RunningServer,
} from "../../tests/support/program/tunnel.ts";
import { eventually } from "./kube_case.ts";

const UPSTREAM = "konnectivity_network_proxy";

/** How many of each there are, at a time. */
const FEW = 2;
const MANY = 4;

/**
 * Expired leases and lost servers take a while, and an agent of Konnectivity's
 * finds servers behind one address by chance.
 */
const SETTLE_MS = 60_000;

/** Servers and agents of which there can be more or fewer. */
export interface ScaleRig extends AsyncDisposable {
  /** Starts one and waits until it listens. */
  addServer(): Promise<void>;
  /** Ends the newest one in order. */
  removeServer(): Promise<void>;
  addAgent(): Promise<void>;
  removeAgent(): Promise<void>;
  readonly servers: readonly Pick<RunningServer, "healthUrl">[];
  readonly agents: readonly Pick<RunningAgent, "healthUrl">[];
}

/** Two of each, then four, then two again. */
export async function scalesBothSides(rig: ScaleRig): Promise<void> {
  await resize(rig, FEW);
  await isWhole(rig, "two of each");
  await resize(rig, MANY);
  await isWhole(rig, "four of each");
  await resize(rig, FEW);
  await isWhole(rig, "two of each again");
}

/** So many of each, and no more. */
export async function holds(rig: ScaleRig, count: number): Promise<void> {
  await resize(rig, count);
  await isWhole(rig, `${count} of each`);
}

async function resize(rig: ScaleRig, count: number): Promise<void> {
  const all = (length: number, act: () => Promise<void>) =>
    Promise.all(Array.from({ length: Math.max(0, length) }, act));
  await all(count - rig.servers.length, () => rig.addServer());
  await all(count - rig.agents.length, () => rig.addAgent());
  while (rig.agents.length > count) await rig.removeAgent();
  while (rig.servers.length > count) await rig.removeServer();
}

/** Each agent is linked to each server, and both know it. */
async function isWhole(rig: ScaleRig, what: string): Promise<void> {
  const { servers, agents } = rig;
  const wanted = (end: "server" | "agent", name: string, value: number) =>
    (end === "server" ? servers : agents).map(({ healthUrl }) => async () => {
      let seen = NaN;
      const family = `${UPSTREAM}_${end}_${name}`;
      await eventually(
        `${what}: ${family} of each ${end} is ${value}`,
        async () => (seen = await gauge(healthUrl, family)) === value,
        SETTLE_MS,
      ).catch((error: Error) => {
        throw new Error(`${error.message}; one has ${seen}`);
      });
    });
  await Promise.all(
    [
      ...wanted("agent", "open_server_connections", servers.length),
      ...wanted("agent", "known_server_count", servers.length),
      ...wanted("server", "ready_backend_connections", agents.length),
    ].map((check) => check()),
  );
}

/** Of a family without labels; 0: it is not shown. */
export async function gauge(healthUrl: string, name: string): Promise<number> {
  const response = await fetch(`${healthUrl}/metrics`).catch(() => undefined);
  const text = await response?.text() ?? "";
  const line = new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, "m").exec(text);
  return Number(line?.[1] ?? 0);
}

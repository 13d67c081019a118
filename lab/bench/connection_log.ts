// deno-lint-ignore-file no-console
/**
 * What the connection log costs: a server and an agent in this process, callers
 * and a target in another one, and the log of both switched on and off every
 * 400 ms; two processes beside each other differ by more than is looked for.
 *
 * `deno run --allow-all lab/bench/connection_log.ts [--format=json] [--v4]`
 *
 * With `--conduits` it is the list of live conduits that is switched, with no log.
 *
 * @module
 */

import { agentRoutes } from "../../admin/agent/agent_routes.ts";
import { showServer } from "../../admin/server/show_server.ts";
import process from "node:process";
import { ConnectionLog } from "../../platform/log/connection_log.ts";
import type { LiveConduit } from "../../platform/conduits/live_conduit.ts";
import { LiveConduits } from "../../platform/conduits/live_conduits.ts";
import { ObservedConduit } from "../../proto/transfer/observed_conduit.ts";
import { openLog } from "../../platform/log/log.ts";
import { ACCESS_FORMATS } from "../../policy/access_format.ts";
import { AccessLog } from "../../policy/access_log.ts";
import { startAgent } from "../../agent/agent.ts";
import { startServer } from "../../server/server.ts";
import { Tunnel } from "../../tests/support/rigs/tunnel_harness.ts";

const WINDOW_MS = 400;
/** Pairs of one window on and one off; the order changes from pair to pair. */
const PAIRS = Number(flag("pairs") ?? 60);
const CALLERS = 16;
/** Until what is compiled has been, and the load is steady. */
const WARM_MS = 5_000;

function flag(name: string): string | undefined {
  return Deno.args.find((one) => one.startsWith(`--${name}=`))?.split("=")[1];
}

async function measure(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "tunnel-bench-" });
  const isLevel = Deno.args.includes("--v4");
  const isList = Deno.args.includes("--conduits");
  const format = ACCESS_FORMATS.find((one) => one === flag("format")) ?? "json";
  const sample = Number(flag("sample") ?? 1);
  const log = openLog("bench", { format: "text", level: 2 });
  const access = (name: string) => {
    const file = { path: `${folder}/${name}.log`, bytesMax: 1e9, filesMax: 2 };
    return isLevel || isList ? {} : { access: { file, format, sample } };
  };
  await using tunnel = await Tunnel.open();
  const server = await startServer(
    {
      ...await tunnel.serverOptions({ server: access("server") }),
      frontend: {
        mode: "http-connect",
        keepaliveMs: 1e6,
        connectEarly200: false,
        listen: { kind: "unix", path: `${folder}/f`, deleteExisting: true },
      },
    },
    log,
    showServer,
  );
  const port = Number(server.addresses.agents.split(":").at(-1));
  const agent = startAgent({
    ...await tunnel.agentOptions({ serverPort: port }),
    ...access("agent"),
  }, { log, proxy: {}, show: agentRoutes });
  await server.whenReady(1);
  if (isList) switchList();
  const switched = new Switch((isOn) => {
    listIsOn = isOn;
    if (isLevel) log.level = isOn ? 4 : 2;
  });
  const script = import.meta.filename!;
  const callers = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", script, "callers", `${folder}/f`],
  }).spawn();
  await pause(WARM_MS);
  const what = isList
    ? "the list of live conduits"
    : isLevel
    ? "--v=4"
    : `--access-log, ${format}`;
  console.log(`${what}: ${await compared(switched)}`);
  callers.kill("SIGKILL");
  await callers.status;
  agent.stop("measured");
  server.stop("measured");
  await Promise.all([agent.finished, server.finished]);
  await Deno.remove(folder, { recursive: true });
}

async function compared(switched: Switch): Promise<string> {
  const ratios: number[] = [];
  const costs = { on: [] as number[], off: [] as number[] };
  for (let pair = 0; pair < PAIRS; pair++) {
    const cost = { on: 0, off: 0 };
    const order = ["on", "off"] as const;
    for (const one of pair % 2 === 0 ? order : order.toReversed()) {
      switched.isOn = one === "on";
      costs[one].push(cost[one] = await costOfWindow(switched));
    }
    ratios.push(cost.on / cost.off);
  }
  const quartile = (part: number) => quantile(ratios, part).toFixed(3);
  return `server and agent together ${
    quantile(costs.off, 0.5).toFixed(1)
  } µs ` +
    `of CPU per connection off, ${quantile(costs.on, 0.5).toFixed(1)} on; ` +
    `ratio ${quartile(0.5)} (median of ${PAIRS} pairs, quartiles ` +
    `${quartile(0.25)} to ${quartile(0.75)})`;
}

/** @returns Microseconds of CPU per connection. */
async function costOfWindow(switched: Switch): Promise<number> {
  const [before, count] = [cpuMicros(), switched.connections];
  await pause(WINDOW_MS);
  // Both ends ask once for each.
  return (cpuMicros() - before) / ((switched.connections - count) / 2);
}

function cpuMicros(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) * part)]!;
}

let listIsOn = true;

/** Connections are listed only while that is on. */
function switchList(): void {
  const { open, dialBegins, dialOver } = LiveConduits.prototype;
  LiveConduits.prototype.open = function (conduit, observer, facts, origin) {
    if (listIsOn) return open.call(this, conduit, observer, facts, origin);
    return new ObservedConduit(conduit, observer) as LiveConduit;
  };
  LiveConduits.prototype.dialBegins = function (dial) {
    if (listIsOn) dialBegins.call(this, dial);
  };
  LiveConduits.prototype.dialOver = function (dial) {
    if (listIsOn) dialOver.call(this, dial);
  };
}

/** Counts connections, and says whether they are written down. */
class Switch {
  connections = 0;
  #isOn = false;

  constructor(readonly change: (isOn: boolean) => void) {
    const { draws } = AccessLog.prototype;
    const { wants } = ConnectionLog.prototype;
    const isOn = () => this.#isOn;
    const count = () => this.connections++;
    AccessLog.prototype.draws = function () {
      return isOn() && draws.call(this);
    };
    ConnectionLog.prototype.wants = function () {
      count();
      return wants.call(this);
    };
  }

  set isOn(isOn: boolean) {
    this.#isOn = isOn;
    this.change(isOn);
  }
}

/** Connects, says a word, reads the answer and hangs up, for ever. */
async function call(path: string): Promise<void> {
  const target = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = target.addr as Deno.NetAddr;
  const serving = serve(target);
  const request = new TextEncoder().encode(
    `CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`,
  );
  const loops = Array.from({ length: CALLERS }, async () => {
    const buffer = new Uint8Array(1_024);
    for (;;) {
      using caller = await Deno.connect({ transport: "unix", path });
      await caller.write(request);
      await caller.read(buffer);
      await caller.write(request);
      await caller.read(buffer);
    }
  });
  await Promise.all([serving, ...loops]);
}

async function serve(target: Deno.Listener): Promise<void> {
  for await (const conn of target) {
    answer(conn).catch(() => {});
  }
}

async function answer(conn: Deno.Conn): Promise<void> {
  using open = conn;
  const buffer = new Uint8Array(1_024);
  for (;;) {
    const length = await open.read(buffer);
    if (length === null) return;
    await open.write(buffer.subarray(0, length));
  }
}

if (Deno.args[0] === "callers") await call(Deno.args[1]!);
else await measure();

/**
 * The tunnel's promises with Konnectivity's programs at the other end: its agent
 * under our server, and our agent under its server.
 *
 * What cannot be promised with them is not tried here; `proto/SPEC.md` names it.
 *
 * Usage: `deno task lab promises [REGEX]`. Ends with
 * `N passed, N failed, N skipped`.
 *
 * @module
 */

import { assert, assertEquals } from "@std/assert";
import type { FrontendProtocol } from "../../client/tunnel_route.ts";
import { findPeer } from "../../tests/support/program/peers.ts";
import { mustEnd } from "../../tests/support/program/run.ts";
import { runCases } from "./case_runner.ts";
import type { Maker } from "../../tests/support/program/tunnel.ts";
import { ConduitProbe } from "../../tests/support/memory/conduit_probe.ts";
import {
  ProbeTarget,
  SilentTarget,
} from "../../tests/support/peers/probe_target.ts";
import { RawCaller } from "../../tests/support/peers/raw_caller.ts";
import {
  eventually,
  metricAt,
} from "../../tests/support/rigs/tunnel_harness.ts";
import { TunnelProcesses } from "../../tests/support/rigs/tunnel_processes.ts";
import {
  type PromiseCheck,
  PROMISES_TO_ALL,
} from "../../tests/support/rigs/tunnel_promises.ts";
import { sameBytes } from "../../proto/bytes/byte_arrays.ts";

const MIB = 1024 * 1024;
const SERVER = "konnectivity_network_proxy_server_";
const AGENT = "konnectivity_network_proxy_agent_";

/** A promise that takes too long is broken. */
const CHECK_TIMEOUT_MS = 60_000;

/** Whose server, whose agent, which frontend. */
interface Cell {
  readonly server: Maker;
  readonly agent: Maker;
  readonly protocol: FrontendProtocol;
}

const CELLS: readonly Cell[] = [
  { server: "ours", agent: "konnectivity", protocol: "grpc" },
  { server: "ours", agent: "konnectivity", protocol: "http-connect" },
  { server: "konnectivity", agent: "ours", protocol: "grpc" },
  { server: "konnectivity", agent: "ours", protocol: "http-connect" },
];

/** A promise that needs the processes; `only` picks cells, default all. */
interface ProcessPromise {
  readonly only?: (cell: Cell) => boolean;
  check(tunnel: TunnelProcesses, cell: Cell): Promise<void>;
}

const underOurServer = ({ server }: Cell) => server === "ours";
const overGrpc = ({ protocol }: Cell) => protocol === "grpc";

const writeThenClose = (bytes: number) => async (tunnel: TunnelProcesses) => {
  const caller = await RawCaller.open(tunnel.socket);
  const { connectId } = await caller.dial(tunnel.target.address);
  const target = await tunnel.target.next();
  const sent = new Uint8Array(bytes).map((_, index) => index * 7);
  const PIECE = 32 * 1024;
  for (let at = 0; at < bytes; at += PIECE) {
    caller.script.data(connectId, sent.subarray(at, at + PIECE));
  }
  caller.script.say({ type: "CLOSE_REQ", connectId, reset: "" });
  await target.ended;
  assert(sameBytes(target.bytes, sent), `${target.receivedBytes} have arrived`);
  target.finish();
  await caller.receives(/^CLOSE_RSP/);
  caller.close();
};

const WORKERS = 2;

const PROCESS_PROMISES: Readonly<Record<string, ProcessPromise>> = {
  "a Go agent links to every worker of a server": {
    only: (cell) => underOurServer(cell) && overGrpc(cell),
    check: async () => {
      await using tunnel = await TunnelProcesses.start({
        agent: "konnectivity",
        serverFlags: [`--workers=${WORKERS}`],
      });
      const { host } = new URL(tunnel.server.healthUrl);
      const links = (worker: number) =>
        metricAt(
          host,
          `${SERVER}ready_backend_connections{worker="${worker}"}`,
        );
      const workers = Array.from({ length: WORKERS }, (_, worker) => worker);
      await eventually(
        "it is linked to all of them",
        async () =>
          (await Promise.all(workers.map(links))).every((one) => one === 1),
        30_000,
      );
      // Each worker in turn.
      for (let count = 0; count < 2 * WORKERS; count++) {
        const { caller, target } = await tunnel.connect("grpc");
        caller.send("hello");
        await target.received(5);
        caller.reset("over");
      }
    },
  },
  "what a Go client wrote before CLOSE_REQ arrives: 8 MiB": {
    only: (cell) => underOurServer(cell) && overGrpc(cell),
    check: writeThenClose(8 * MIB),
  },

  "kube-apiserver's way of ending: what came before is delivered": {
    only: (cell) => underOurServer(cell) && overGrpc(cell),
    async check(tunnel) {
      const caller = await RawCaller.open(tunnel.socket);
      const { connectId } = await caller.dial(tunnel.target.address);
      const target = await tunnel.target.next();
      const last = crypto.getRandomValues(new Uint8Array(48 * 1024));
      caller.hold();
      caller.script.data(connectId, last);
      caller.script.say({ type: "CLOSE_REQ", connectId, reset: "" });
      await caller.hangUp();
      await target.ended;
      assert(sameBytes(target.bytes, last), `${target.receivedBytes} arrived`);
    },
  },

  "200 of 200 dials of Konnectivity's client get the banner": {
    async check(tunnel, { protocol }) {
      const banner = "SSH-2.0-banner";
      await using greeter = new ProbeTarget(banner);
      const client = await findPeer("konnectivity-transfer");
      for (let dials = 0; dials < 200; dials += 20) {
        await mustEnd([
          ...[client, `-mode=${protocol}`, `-uds=${tunnel.socket}`],
          ...[`-to=${greeter.address}`, `-banner=${banner}`, "-n=20"],
        ]);
      }
    },
  },

  "an agent killed during a dial fails it within a second": {
    only: underOurServer,
    async check(tunnel, { protocol }) {
      const silent = await SilentTarget.open();
      const target = { protocol: "tcp", address: silent.address };
      const failed = tunnel.dial(protocol, { target }).then(
        () => new Error("was let in"),
        (error: Error) => error,
      );
      await pendingDials(tunnel, 1);
      const killedMs = performance.now();
      tunnel.agent.child.signal("SIGKILL");
      const { message } = await failed;
      const tookMs = performance.now() - killedMs;
      assert(tookMs < 1000, `${tookMs} ms`);
      assert(message.includes("the link to agent"), message);
      silent.close();
    },
  },

  "two links of one agent id, with equal connectIDs, stay apart": {
    only: (cell) => underOurServer(cell) && overGrpc(cell),
    async check(tunnel, { agent }) {
      const flags = (name: string) => [
        "--agent-id=twin",
        `--agent-identifiers=host=${name}`,
      ];
      const names = ["one", "two"];
      for (const name of names) await tunnel.addAgent(agent, flags(name));
      const links = 'tunnel_server_links{carrier="packets"}';
      await eventually(
        "three links",
        async () => await metricAt(healthOf(tunnel), links) === 3,
      );
      const pairs = await Promise.all(names.map(async (node) => {
        const own = new ProbeTarget();
        const target = { protocol: "tcp", address: own.address };
        const conduit = await tunnel.dial("grpc", { target, node });
        return {
          own,
          caller: new ConduitProbe(conduit),
          target: await own.next(),
        };
      }));
      for (const [index, { caller, target }] of pairs.entries()) {
        caller.send(new Uint8Array(100_000).fill(index));
        target.send(new Uint8Array(100_000).fill(255 - index));
      }
      for (const [index, { caller, target }] of pairs.entries()) {
        await target.received(100_000);
        await caller.received(100_000);
        assert(target.bytes.every((byte) => byte === index));
        assert(caller.bytes.every((byte) => byte === 255 - index));
      }
      const [one, two] = pairs;
      tunnel.agents[2]!.child.signal("SIGKILL");
      assertEquals((await two!.caller.closed).kind, "lost");
      one!.caller.send("!");
      await one!.target.received(100_001);
      for (const { own } of pairs) await own.close();
    },
  },

  "50 cancelled dials leave nothing behind": {
    // Konnectivity's server forgets to count gRPC dials that end with their call.
    only: (cell) => underOurServer(cell) || !overGrpc(cell),
    async check(tunnel, { protocol }) {
      const silent = await SilentTarget.open();
      const target = { protocol: "tcp", address: silent.address };
      const abort = new AbortController();
      const { signal } = abort;
      const dials = Array.from(
        { length: 50 },
        () => tunnel.dial(protocol, { target, signal }).catch(() => {}),
      );
      await pendingDials(tunnel, 50);
      abort.abort();
      await Promise.all(dials);
      await pendingDials(tunnel, 0);
      silent.close();
      const agent = tunnel.agent.healthUrl.slice("http://".length);
      const health = healthOf(tunnel);
      await eventually(
        "nothing is left",
        async () =>
          await metricAt(health, `${SERVER}established_connections`) === 0 &&
          await metricAt(agent, `${AGENT}open_endpoint_connections`) === 0,
      );
      const pair = await tunnel.connect(protocol);
      pair.caller.send("still works");
      await pair.target.received(11);
    },
  },

  "a stalled caller is reset alone, and counted": {
    only: (cell) => underOurServer(cell) && overGrpc(cell),
    async check(tunnel) {
      const stalled = await tunnel.connect("grpc");
      const other = await tunnel.connect("grpc");
      stalled.caller.stopReading();
      stalled.target.send(new Uint8Array(64 * MIB));
      assertEquals((await stalled.caller.closed).kind, "reset");
      other.target.send(new Uint8Array(8 * MIB));
      await other.caller.received(8 * MIB);
      const counted = "tunnel_server_stalled_connections_reset_total";
      assertEquals(await metricAt(healthOf(tunnel), counted), 1);
    },
  },

  "a stalled target is reset alone, and counted": {
    only: (cell) => cell.agent === "ours" && overGrpc(cell),
    async check(tunnel) {
      const stalled = await tunnel.connect("grpc");
      const other = await tunnel.connect("grpc");
      stalled.target.stopReading();
      stalled.caller.send(new Uint8Array(64 * MIB));
      const agent = tunnel.agent.healthUrl.slice("http://".length);
      const counted = "tunnel_agent_stalled_connections_reset_total";
      while (await metricAt(agent, counted) === 0) await pause();
      other.caller.send(new Uint8Array(8 * MIB));
      await other.target.received(8 * MIB);
    },
  },
};

/** Each promise with each pair of ends that it is tried with. */
function casesOf(cell: Cell): [string, () => Promise<void>][] {
  const ends = `${cell.server} server, ${cell.agent} agent, ${cell.protocol}`;
  const cases: [string, ProcessPromise["check"]][] = [
    ...Object.entries(PROMISES_TO_ALL).map((
      [sentence, check],
    ): [string, ProcessPromise["check"]] => [
      sentence,
      (tunnel) => checkRig(check, tunnel, cell),
    ]),
    ...Object.entries(PROCESS_PROMISES)
      .filter(([, { only }]) => only?.(cell) !== false)
      .map(([sentence, { check }]): [string, ProcessPromise["check"]] => [
        sentence,
        check,
      ]),
  ];
  return cases.map(([sentence, check]) => [
    `${ends}: ${sentence}`,
    () => checkOne(cell, (tunnel) => check(tunnel, cell)),
  ]);
}

/** A tunnel for each: what one promise breaks must not spoil the next. */
async function checkOne(
  { server, agent, protocol }: Cell,
  check: (tunnel: TunnelProcesses) => Promise<void>,
): Promise<void> {
  await using tunnel = await TunnelProcesses.start({
    server,
    agent,
    mode: protocol,
  });
  await check(tunnel);
  assert(!tunnel.server.child.hasEnded, "the server died");
}

function checkRig(
  check: PromiseCheck,
  tunnel: TunnelProcesses,
  { protocol }: Cell,
): Promise<void> {
  return check({
    protocol,
    target: tunnel.target,
    dial: (dial) => tunnel.dial(protocol, dial),
    connect: () => tunnel.connect(protocol),
    cut: () => tunnel.agent.child.signal("SIGKILL"),
  });
}

function healthOf(tunnel: TunnelProcesses): string {
  return tunnel.server.healthUrl.slice("http://".length);
}

async function pendingDials(
  tunnel: TunnelProcesses,
  count: number,
): Promise<void> {
  const name = `${SERVER}pending_backend_dials`;
  await eventually(
    `${count} dials are under way`,
    async () => await metricAt(healthOf(tunnel), name) === count,
  );
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 50));
}

if (import.meta.main) {
  const code = await runCases({
    cases: Object.fromEntries(CELLS.flatMap(casesOf)),
    start: () => Promise.resolve(undefined),
    timeoutMs: CHECK_TIMEOUT_MS,
  });
  Deno.exit(code);
}

/**
 * A node whose name server answers some names and never others: those others
 * cost themselves. With files of its own in `/etc`, where that is allowed.
 *
 * @module
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { DnsServer, fromTable } from "../support/peers/dns_server.ts";
import { mayMount, withOwnEtc } from "../support/rigs/own_etc.ts";
import { TunnelProcesses } from "../support/rigs/tunnel_processes.ts";
import type { Conduit } from "../../proto/transfer/conduit.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import { patience } from "../support/watch/patience.ts";

const DEAD = 1_000;

/** Dials of each name that is well. */
const TIMES = 20;

/** Where an agent's `/etc` says that names are asked for. */
const NAME_SERVER = { hostname: "127.83.0.1", port: 53 };

Deno.test(
  "1,000 dials to names whose name server is silent cost no other name",
  {
    ignore: !mayMount,
  },
  async () => {
    const asked = Promise.withResolvers<void>();
    const live = Object.fromEntries(
      Array.from(
        { length: TIMES },
        (_, n) => [`n${n}.live.test`, ["127.0.0.1"]],
      ),
    );
    const answer = fromTable(live);
    let silent = 0;
    await using _server = DnsServer.open((question) => {
      if (!question.name.endsWith("dead.test")) return answer(question);
      if (++silent >= 64) asked.resolve();
      return [];
    }, NAME_SERVER);
    await using tunnel = await TunnelProcesses.start({ agent: "none" });
    await tunnel.addAgent(
      "ours",
      [],
      withOwnEtc(
        tunnel.workspace.folder,
        {
          "resolv.conf": `nameserver ${NAME_SERVER.hostname}\n`,
          hosts: "127.0.0.1 localhost known.test\n",
        },
      ),
    );
    const { port } = new URL(`tcp://${tunnel.target.address}`);
    const dial = (host: string): Promise<Conduit> => {
      const target = { protocol: "tcp", address: `${host}:${port}` };
      return tunnel.dial("grpc", { target });
    };
    const dead = Array.from(
      { length: DEAD },
      (_, n) => dial(`n${n}.dead.test`).then(String, ({ message }) => message),
    );
    await asked.promise;
    for (const name of [() => "known.test", (n: number) => `n${n}.live.test`]) {
      const took: number[] = [];
      for (let n = 0; n < TIMES; n++) {
        const begin = performance.now();
        abandon(await dial(name(n)), "the test is over");
        took.push(performance.now() - begin);
      }
      const median = took.sort((a, b) => a - b)[TIMES >> 1]!;
      assert(median < patience(100), `${name(0)}: ${median} ms`);
    }
    const said = new Set(await Promise.all(dead));
    for (const message of said) {
      assertMatch(
        message,
        /lookup n\d+\.dead\.test: i\/o timeout/,
      );
    }
    assertEquals(said.size, DEAD);
  },
);

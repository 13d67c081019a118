/**
 * What leads to servers loses its mind: name servers, load balancers.
 *
 * @module
 */

import { type FaultFamily, overServer } from "../fault.ts";
import { OF_OUR_CALLERS } from "../entrance.ts";
import type { NameMood } from "../name_server.ts";
import { sleep } from "../../../tests/support/watch/event_loop.ts";

const MOODS: readonly NameMood[] = ["silent", "servfail", "nxdomain", "empty"];
const MOOD_MS = 1_200;

/** In which the balancer leads to one server alone. */
const PINNED_MS = 6_000;

/** An agent that misses one server of three may ask again so often meanwhile. */
const ASKS_MAX = 12;

export const NAME_FAULTS: FaultFamily = {
  "names-flap": (stage, prng) => {
    const server = prng.pick([...stage.servers.values()]);
    return {
      name: `names flap, and server ${server.name} is started anew`,
      lastsMs: 0,
      // A name that is said not to exist leads nowhere, whoever knew it before.
      allows: { mayBreak: overServer(server.name), mayFailBy: OF_OUR_CALLERS },
      hits: [server.name, "names"],
      async apply() {
        stage.names.mood = "silent";
        await server.stop("SIGKILL");
        await server.start();
        for (const mood of MOODS) {
          stage.names.mood = mood;
          await sleep(MOOD_MS);
        }
      },
      // deno-lint-ignore require-await -- others have to wait.
      undo: async () => {
        stage.names.mood = "well";
      },
      // Who knew the server's address finds it again without the name.
      check: async () => {
        const wanted = stage.topology.agents
          .filter(({ finds }) => finds === "each").length;
        const links = await stage.gauge(server, "tunnel_server_links");
        if (links < wanted) {
          throw new Error(`it has ${links} links of ${wanted} agents`);
        }
      },
    };
  },

  "balancer-pinned": (stage, prng) => {
    const index = prng.below(stage.topology.servers.length);
    const id = stage.topology.servers[index]!;
    const server = stage.servers.get(id)!;
    let before = 0;
    return {
      name: `the balancer sends all to another server than ${id}, which is ` +
        "started anew",
      lastsMs: PINNED_MS,
      allows: { mayBreak: overServer(id), backMs: 15_000 },
      hits: [id, "balancer"],
      async apply() {
        const { balancer } = stage;
        balancer.sendAllTo((index + 1) % stage.topology.servers.length);
        before = balancer.accepted;
        await server.stop("SIGKILL");
        await server.start();
      },
      // deno-lint-ignore require-await -- others have to wait.
      async undo() {
        stage.balancer.sendAllTo();
      },
      // deno-lint-ignore require-await -- as above.
      async check() {
        const asked = stage.balancer.accepted - before;
        if (asked > ASKS_MAX) {
          throw new Error(
            `the agent asked ${asked} times in ${PINNED_MS / 1000} s`,
          );
        }
      },
    };
  },
};

/**
 * What servers share is away, slow, or tells lies: who is linked stays linked,
 * and who dials is served.
 *
 * @module
 */

import { SAID_FIRST } from "../entrance.ts";
import { type FaultFamily, type FaultMaker, overServer } from "../fault.ts";
import type { ApiMood } from "../api_front.ts";
import type { Stage } from "../stage.ts";

const LASTS_MS = 5_000;

/** Longer than servers that say nothing count as there. */
const LONG_MS = 20_000;

/** Nothing but the state is hit: nobody may feel it. */
function api(mood: ApiMood, name: string, lastsMs = LASTS_MS): FaultMaker {
  return ({ store: { parts: { api } } }) => {
    if (api === undefined) return WRONG_STAGE;
    return {
      ...{ name, lastsMs, allows: {}, hits: ["store"] },
      // deno-lint-ignore require-await -- others have to wait.
      apply: async () => {
        api.mood = mood;
      },
      // deno-lint-ignore require-await -- as above.
      undo: async () => {
        api.mood = "well";
      },
    };
  };
}

/** Never shown: families are chosen by what a stage stands on. */
const WRONG_STAGE = "the stage does not stand on it";

export const KUBERNETES_FAULTS: FaultFamily = {
  "kube-away": api("away", "kube-apiserver is away"),
  "kube-slow": api("slow", "kube-apiserver takes 1.5 s for each answer"),
  "kube-gone": api("gone", "kube-apiserver answers 410"),
  "kube-error": api("error", "kube-apiserver answers 500"),
  "kube-empty": api("empty", "kube-apiserver says that there is nothing"),
  "kube-killed": (stage, prng) => {
    const { cluster } = stage.store.parts;
    if (cluster === undefined) return WRONG_STAGE;
    const server = prng.pick([...stage.servers.values()]);
    let restarted: Promise<void> | undefined;
    return {
      name: `kube-apiserver is started anew, and server ${server.name} killed`,
      lastsMs: 0,
      allows: {
        ...{ mayBreak: overServer(server.name), backMs: 15_000 },
        // As in network.ts: their dials last until the echo.
        underWay: SAID_FIRST,
      },
      hits: [server.name, "store"],
      async apply() {
        await server.stop("SIGKILL");
        // That takes a minute, and what was under way is over by then.
        restarted = cluster.restartApiServer();
        restarted.catch(() => {});
      },
      async undo() {
        await restarted;
        await server.start();
      },
    };
  },
};

export const LONG_KUBERNETES_FAULTS: FaultFamily = {
  "kube-away-long": api("away", "kube-apiserver is away for long", LONG_MS),
  "kube-empty-long": api("empty", "kube-apiserver is empty for long", LONG_MS),
};

/** What befalls the line to etcd. */
function etcdLine(
  name: string,
  apply: (stage: Stage) => void,
  lastsMs = LASTS_MS,
): FaultMaker {
  return (stage) => {
    const { line } = stage.store.parts;
    if (line === undefined) return WRONG_STAGE;
    return {
      ...{ name, lastsMs, allows: {}, hits: ["store"] },
      // deno-lint-ignore require-await -- others have to wait.
      apply: async () => apply(stage),
      // deno-lint-ignore require-await -- as above.
      async undo() {
        line.isAway = false;
        line.delayMs = 0;
        line.unblock("up");
        line.unblock("down");
      },
    };
  };
}

function lineOf(stage: Stage) {
  return stage.store.parts.line!;
}

export const ETCD_FAULTS: FaultFamily = {
  "etcd-away": etcdLine("etcd is away", (stage) => {
    lineOf(stage).isAway = true;
    lineOf(stage).cut();
  }),
  "etcd-silent": etcdLine("etcd says nothing any more", (stage) => {
    lineOf(stage).block("down");
  }),
  "etcd-slow": etcdLine("etcd takes 0.6 s for each answer", (stage) => {
    lineOf(stage).delayMs = 300;
  }),
  "etcd-compacted": ({ store: { parts: { etcd, line } } }) => {
    if (etcd === undefined) return WRONG_STAGE;
    return {
      name: "etcd has forgotten the past, and drops its watches",
      ...{ lastsMs: LASTS_MS, allows: {}, hits: ["store"] },
      async apply() {
        await etcd.put("chaos", "one");
        await etcd.compact();
        line!.cut();
      },
      undo: () => Promise.resolve(),
    };
  },
  "etcd-killed": (stage, prng) => {
    const { etcd } = stage.store.parts;
    if (etcd === undefined) return WRONG_STAGE;
    const server = prng.pick([...stage.servers.values()]);
    return {
      name: `etcd is killed, and server ${server.name} with it`,
      lastsMs: LASTS_MS,
      allows: {
        ...{ mayBreak: overServer(server.name), backMs: 15_000 },
        underWay: SAID_FIRST,
      },
      hits: [server.name, "store"],
      async apply() {
        await Promise.all([
          etcd.stopMember(0, "SIGKILL"),
          server.stop("SIGKILL"),
        ]);
      },
      async undo() {
        await etcd.startMember(0);
        await etcd.ready();
        await server.start();
      },
    };
  },
};

export const LONG_ETCD_FAULTS: FaultFamily = {
  "etcd-away-long": etcdLine("etcd is away for long", (stage) => {
    lineOf(stage).isAway = true;
    lineOf(stage).cut();
  }, LONG_MS),
};

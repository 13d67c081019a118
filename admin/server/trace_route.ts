/**
 * `POST /v1/trace`: follows a dial hop by hop: the agent and the strategy that
 * found it; the policy's decision; whether the agent's link is alive; and the
 * agent's answer about the target, by a dial without data.
 *
 * The dial is the server's own: it is neither counted nor recorded as a
 * caller's. The audit log of the admin API names the user who asked for it.
 *
 * @module
 */

import {
  failed,
  type Finding,
  fine,
  type Hop,
  skipped,
  walk,
} from "../doctor/walk/path_walk.ts";
import {
  AdminFailure,
  type AdminRoute,
  ASKED_LENGTH_MAX,
  isAskedText,
  postRoute,
} from "../../net/admin/admin_api.ts";
import { ADMIN_ACTIONS, ADMIN_API } from "../../proto/admin/api.ts";
import type {
  TraceAnswer,
  TraceQuestion,
} from "../../proto/admin/path_check.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import {
  codeOfWords,
  DialError,
  type DialTarget,
} from "../../proto/peer/dial_error.ts";
import { hostOf, hostPort, portOf } from "../../proto/peer/host_port.ts";
import { isLoopbackHost, parseIpAddress } from "../../proto/peer/ip_address.ts";
import type { Timers } from "../../proto/sync/clock.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { Peers } from "../../server/peers/peers.ts";
import type { Caller } from "../../server/policy/caller.ts";
import { UNRESTRICTED } from "../../server/policy/policy.ts";
import type {
  DialAuthorizer,
  RequestedDial,
} from "../../server/policy/dial_authorizer.ts";
import {
  ambiguousTarget,
  connectedNodes,
  meantNode,
  nodeHint,
} from "../../server/routing/meant_node.ts";
import { PING_MS, type PingFacts, pingLink } from "./ping_route.ts";
import { targetFault } from "./target_fault.ts";

/** What the route needs of the server. */
interface TraceFacts extends PingFacts {
  readonly authorizer: DialAuthorizer;
  readonly peers: Peers;
  /** The frontend socket, whose caller's rights count by default. */
  readonly socket: string;
}

/**
 * A real dial waits longer; a user who looks for a fault wants an answer soon.
 */
const DIAL_MS = 2_200;

/** For each other address of the node, where the target refuses. */
const SIBLING_MS = 200;

/** See the module description. */
export function traceRoute(facts: TraceFacts): AdminRoute {
  return postRoute(
    `${ADMIN_API}/${ADMIN_ACTIONS.trace}`,
    async ({ body, signal }): Promise<TraceAnswer> => {
      const { hops } = new Trace(questionIn(body), facts);
      return { steps: await walk(hops, { timers: facts.timers, signal }) };
    },
  );
}

function questionIn(body: unknown): TraceQuestion {
  const { target, node, as } = Object(body);
  const isWhole = isAskedText(target) &&
    [node, as].every((text) => text === undefined || isAskedText(text)) &&
    /^[\x21-\x7e]+:\d{1,5}$/.test(target);
  if (!isWhole) {
    throw new AdminFailure(400, {
      code: "TUN101",
      message: "Cannot trace: wanted { target: HOST:PORT, node?, as? }",
    });
  }
  return { target, node, as };
}

/** One dial, from the choice of an agent to its target. */
class Trace {
  readonly #dialed: RequestedDial;
  #link: AgentLink | undefined;
  #roundTripMs = 0;

  constructor(
    private readonly question: TraceQuestion,
    private readonly facts: TraceFacts,
  ) {
    const { target: address, node, as } = question;
    const dial: RequestedDial = {
      target: { protocol: "tcp", address },
      caller: callerOf(as, facts.socket),
      node,
    };
    this.#dialed = meantNode(dial, facts) ?? dial;
  }

  get hops(): readonly Hop[] {
    return [
      { name: "node", look: () => this.#choose() },
      { name: "policy", look: () => this.#evaluate() },
      {
        name: "link",
        deadlineMs: PING_MS + 100,
        look: (signal) => this.#ping(signal),
      },
      { name: "target", deadlineMs: DIAL_MS + 500, look: () => this.#dial() },
    ];
  }

  #choose(): Finding {
    const { registry, peers } = this.facts;
    const { node, target: { address: target } } = this.#dialed;
    const isAmbiguous = node === undefined && isLoopbackHost(hostOf(target)) &&
      registry.agents > 1;
    if (isAmbiguous) {
      return failed(
        "TUN508",
        ambiguousTarget(target, connectedNodes(registry.links)),
        "name the node: --node NAME",
      );
    }
    const picked = registry.pick(this.#dialed.target, node);
    if (picked.kind === "noAgent") {
      const [peer] = peers.find(this.#dialed.target, node);
      if (peer !== undefined) {
        return failed(
          "TUN501",
          `its agent is linked to server ${peer.serverId}, not to this one`,
          `ask that server: tunnel trace … --server ${peer.address}`,
        );
      }
      const hint = node === undefined
        ? ""
        : nodeHint(node, connectedNodes(registry.links));
      return failed(
        "TUN501",
        hint === "" ? picked.message : `${picked.message}; ${hint}`,
        node === undefined
          ? registry.agents > 0
            ? "name a linked node with --node, or grant it that host or " +
              "address (tunnel node approve NAME --identifiers host=…, and on " +
              "the node tunnel agent --identifiers host=…): the server chooses " +
              "by --proxy-strategies"
            : "link an agent: `tunnel doctor agent` on its node"
          : `tunnel doctor node ${clipped(node, ASKED_LENGTH_MAX)}`,
      );
    }
    this.#link = picked.link;
    const { agentId, remoteAddress } = picked.link.peer;
    const by = node === undefined
      ? `strategy ${registry.strategyFor(this.#dialed.target) ?? "default"}`
      : target === this.question.target
      ? "its name"
      : `the target's host, which is its name: ${target} there is meant`;
    return fine(`${agentId} (${remoteAddress}), chosen by ${by}`);
  }

  #evaluate(): Finding {
    const { authorizer } = this.facts;
    const { as } = this.question;
    const decision = authorizer.explain(this.#dialed, this.#link?.peer);
    const who = as ?? "callers of this machine";
    if (decision.isAllowed) {
      return fine(
        decision === UNRESTRICTED
          ? `nothing restricts ${who}`
          : `${who} may: ${decision.rule}`,
      );
    }
    const why = decision.note === undefined ? "" : ` (${decision.note})`;
    return decision.rule === ""
      ? failed(
        "TUN601",
        `no rule of the server's policy allows ${who} this target${why}`,
        "add an allow rule to the policy file; `tunnel policy test` says " +
          "which rule decides",
      )
      : failed(
        "TUN601",
        `the server's rule ${decision.rule} denies ${who} this target${why}`,
        "change that rule in the policy file",
      );
  }

  async #ping(signal: AbortSignal): Promise<Finding> {
    const { timers } = this.facts;
    const { agentId } = this.#link!.peer;
    const answer = await pingLink(this.#link!, timers, signal);
    if (answer.roundTripMs === undefined) {
      return failed(
        "TUN507",
        `the agent of ${agentId} does not answer: ${answer.problem}`,
        "on the node: the agent or the machine hangs (ps -o stat, " +
          "dmesg); continue or restart it",
      );
    }
    this.#roundTripMs = answer.roundTripMs;
    return fine(`${agentId} answers in ${answer.roundTripMs} ms`);
  }

  async #dial(): Promise<Finding> {
    const link = this.#link;
    if (link === undefined) return skipped("there is no agent to ask");
    const { timers } = this.facts;
    const beganMs = timers.now();
    const { agentId } = link.peer;
    const { target } = this.#dialed;
    const tried = await dialOnce(link, target, timers);
    const { error, end } = tried;
    const tookMs = tried.connectedMs ?? timers.now() - beganMs;
    if (end !== undefined) {
      return failed(
        "TUN515",
        `${target.address} takes connections of ${agentId}, and ${end} them ` +
          "at once",
        "its own limit or allow-list does that, or it is a balancer without a " +
          "live program behind it: see its log",
      );
    }
    if (error !== undefined) {
      const isRefused = codeOfWords(error.reason, error.message) === "TUN503";
      const other = isRefused ? await this.#sibling(link, target) : undefined;
      return targetFault(error, target.address, agentId, other);
    }
    const there = Math.max(0, tookMs - this.#roundTripMs);
    return fine(
      `${agentId} connects to ${target.address} (${there.toFixed(1)} ms ` +
        `behind the link's ${this.#roundTripMs} ms)` +
        (tried.hasSpoken
          ? ""
          : ", which says nothing by itself: whether its program answers was " +
            "not asked"),
    );
  }

  /** @returns Another address of the node that takes connections to the port. */
  async #sibling(
    link: AgentLink,
    dialed: DialTarget,
  ): Promise<string | undefined> {
    const { timers } = this.facts;
    for (const address of siblingsOf(dialed.address)) {
      const target = { ...dialed, address };
      const { error } = await dialOnce(link, target, timers, SIBLING_MS);
      if (error === undefined) return address;
    }
    return undefined;
  }
}

/** Other addresses at which the program may listen instead. */
function siblingsOf(target: string): readonly string[] {
  const host = hostOf(target);
  if (parseIpAddress(host) === undefined) return [];
  return ["127.0.0.1", "::1"].filter((other) => other !== host)
    .map((other) => hostPort(other, portOf(target)));
}

/** The default caller: programs of this machine. */
function callerOf(as: string | undefined, socket: string): Caller {
  const local = { remoteAddress: "admin API", localAddress: socket };
  if (as === undefined) return { ...local, identity: ANONYMOUS };
  const node = /^node:(.+)$/.exec(as)?.[1];
  return node !== undefined ? { ...local, identity: ANONYMOUS, node } : {
    ...local,
    identity: { ...ANONYMOUS, kind: "certificate", commonName: as },
  };
}

/** What became of a dial that carries nothing. */
interface Tried {
  readonly error?: DialError;
  /** What the target did right after the connection. */
  readonly end?: "ends" | "resets";
  readonly hasSpoken?: boolean;
  readonly connectedMs?: number;
}

/**
 * Within this time a target that closes at once has closed, and one that greets
 * has greeted.
 */
const WATCH_MS = 150;

function dialOnce(
  link: AgentLink,
  target: DialTarget,
  timers: Timers,
  waitMs = DIAL_MS,
): Promise<Tried> {
  const beganMs = performance.now();
  return new Promise((resolve) => {
    const timer = timers.after(waitMs, () => {
      pending.cancel();
      const words = `no answer within ${
        waitMs / 1_000
      } s, though the agent answers`;
      resolve({ error: new DialError("timeout", words) });
    });
    const pending = link.dial(target, {
      onConnected: (conduit) => {
        timer.cancel();
        const connectedMs = performance.now() - beganMs;
        const over = (tried: Tried) => {
          watch.cancel();
          resolve({ connectedMs, ...tried });
          conduit.reset("it was a trace");
        };
        const watch = timers.after(WATCH_MS, () => over({}));
        conduit.attach({
          onData: () => over({ hasSpoken: true }),
          onWritable: () => {},
          onEnd: () => over({ end: "ends" }),
          onClose: () => over({ end: "resets" }),
        });
      },
      onFailed: (error) => {
        timer.cancel();
        resolve({ error });
      },
    });
  });
}

/**
 * `POST /v1/trace`: what happens to a dial, hop by hop: which agent, by which
 * strategy; what the policy says; whether the agent's link lives; and what the
 * agent says of the target, by a dial that carries nothing.
 *
 * The dial is the server's own: it is not counted or recorded as anybody's. Who
 * asked for it is in the audit log of the admin API.
 *
 * @module
 */

import { failed, fine, skipped } from "../../client/doctor/faults.ts";
import { type Finding, type Hop, walk } from "../../client/doctor/path_walk.ts";
import { AdminFailure, type AdminRoute } from "../../net/admin/admin_api.ts";
import { ADMIN_ACTIONS, ADMIN_API } from "../../proto/admin/api.ts";
import type {
  TraceAnswer,
  TraceQuestion,
} from "../../proto/admin/path_check.ts";
import { abandon } from "../../proto/link/dial_handler.ts";
import type { AgentLink } from "../../proto/link/link.ts";
import { DialError, type DialTarget } from "../../proto/peer/dial_error.ts";
import { hostOf } from "../../proto/peer/host_port.ts";
import { isLoopbackHost } from "../../proto/peer/ip_address.ts";
import { ANONYMOUS } from "../../proto/peer/peer_identity.ts";
import { clipped } from "../../proto/peer/quoted.ts";
import type { Peers } from "../peers/peers.ts";
import type { Caller } from "../policy/caller.ts";
import { UNRESTRICTED } from "../policy/policy.ts";
import type { DialAuthorizer } from "../policy/dial_authorizer.ts";
import {
  ambiguousTarget,
  connectedNodes,
  nodeHint,
} from "../routing/connected_nodes.ts";
import { PING_MS, type PingFacts, pingLink } from "./ping_route.ts";
import { targetFault } from "./target_fault.ts";

/** What the route needs of the server. */
export interface TraceFacts extends PingFacts {
  readonly authorizer: DialAuthorizer;
  readonly peers: Peers;
  /** Where callers of this machine come in: whose rights count unless said. */
  readonly socket: string;
}

/** Who dials waits longer; who looks wants to know soon. */
const DIAL_MS = 2_200;

/** Longest target and names that are taken. */
const TARGET_LENGTH_MAX = 300;

/** See the module description. */
export function traceRoute(facts: TraceFacts): AdminRoute {
  return {
    method: "POST",
    path: `${ADMIN_API}/${ADMIN_ACTIONS.trace}`,
    role: "operate",
    answer: async ({ body, signal }): Promise<TraceAnswer> => {
      const question = questionIn(body);
      const trace = new Trace(question, facts);
      return {
        steps: await walk(trace.hops, { timers: facts.timers, signal }),
      };
    },
  };
}

function questionIn(body: unknown): TraceQuestion {
  const { target, node, as } = Object(body);
  const isText = (found: unknown) =>
    found === undefined ||
    (typeof found === "string" && found !== "" &&
      found.length <= TARGET_LENGTH_MAX);
  const isWhole = typeof target === "string" &&
    [target, node, as].every(isText) && /^[\x21-\x7e]+:\d{1,5}$/.test(target);
  if (!isWhole) {
    throw new AdminFailure(400, {
      code: "TUN514",
      message: "Cannot trace: wanted { target: HOST:PORT, node?, as? }",
    });
  }
  return { target, node, as };
}

/** One dial, from the choice of an agent to its target. */
class Trace {
  readonly #question: TraceQuestion;
  readonly #facts: TraceFacts;
  readonly #target: DialTarget;
  #link: AgentLink | undefined;
  #roundTripMs = 0;

  constructor(question: TraceQuestion, facts: TraceFacts) {
    this.#question = question;
    this.#facts = facts;
    this.#target = { protocol: "tcp", address: question.target };
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
      {
        name: "target",
        deadlineMs: DIAL_MS + 500,
        look: () => this.#dial(),
      },
    ];
  }

  #choose(): Finding {
    const { registry, peers } = this.#facts;
    const { node, target } = this.#question;
    const isAmbiguous = node === undefined && isLoopbackHost(hostOf(target)) &&
      registry.agents > 1;
    if (isAmbiguous) {
      return failed(
        "TUN508",
        ambiguousTarget(target, connectedNodes(registry.links)),
        "name the node: --node NAME",
      );
    }
    const picked = registry.pick(this.#target, node);
    if (picked.kind === "noAgent") {
      const [peer] = peers.find(this.#target, node);
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
          ? "link an agent: `tunnel doctor agent` on its node"
          : `tunnel doctor node ${clipped(node, TARGET_LENGTH_MAX)}`,
      );
    }
    this.#link = picked.link;
    const { agentId, remoteAddress } = picked.link.peer;
    const by = node === undefined
      ? `strategy ${registry.strategyFor(this.#target) ?? "default"}`
      : "its name";
    return fine(`${agentId} (${remoteAddress}), chosen by ${by}`);
  }

  #evaluate(): Finding {
    const { authorizer } = this.#facts;
    const { as, node } = this.#question;
    const decision = authorizer.explain(
      { caller: this.#caller, target: this.#target, node },
      this.#link?.peer,
    );
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
        "TUN602",
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

  get #caller(): Caller {
    const { as } = this.#question;
    const { socket } = this.#facts;
    const local = { remoteAddress: "admin API", localAddress: socket };
    if (as === undefined) return { ...local, identity: ANONYMOUS };
    const node = /^node:(.+)$/.exec(as)?.[1];
    if (node !== undefined) return { ...local, identity: ANONYMOUS, node };
    return {
      ...local,
      identity: {
        ...ANONYMOUS,
        kind: "certificate",
        commonName: as,
      },
    };
  }

  async #ping(signal: AbortSignal): Promise<Finding> {
    const { timers } = this.#facts;
    const { agentId } = this.#link!.peer;
    const answer = await pingLink(this.#link!, timers, signal);
    if (answer.roundTripMs === undefined) {
      return failed(
        "TUN507",
        `the agent of ${agentId} does not answer: ${answer.problem}`,
        "on the node: the agent or the machine stands still (ps -o stat, " +
          "dmesg); continue or restart it",
      );
    }
    this.#roundTripMs = answer.roundTripMs;
    return fine(`${agentId} answers in ${answer.roundTripMs} ms`);
  }

  async #dial(): Promise<Finding> {
    const link = this.#link;
    if (link === undefined) return skipped("there is no agent to ask");
    const { timers } = this.#facts;
    const beganMs = timers.now();
    const { agentId } = link.peer;
    const error = await dialOnce(link, this.#target, timers.after.bind(timers));
    const tookMs = timers.now() - beganMs;
    if (error !== undefined) {
      return targetFault(error, this.#target.address, agentId);
    }
    const there = Math.max(0, tookMs - this.#roundTripMs);
    return fine(
      `${agentId} connects to ${this.#target.address} (${
        there.toFixed(1)
      } ms ` +
        `behind the link's ${this.#roundTripMs} ms)`,
    );
  }
}

/** @returns Why not, if it does not connect. */
function dialOnce(
  link: AgentLink,
  target: DialTarget,
  after: PingFacts["timers"]["after"],
): Promise<DialError | undefined> {
  return new Promise((resolve) => {
    const timer = after(DIAL_MS, () => {
      pending.cancel();
      resolve(
        new DialError(
          "timeout",
          `no answer within ${DIAL_MS / 1_000} s, though the agent answers`,
        ),
      );
    });
    const pending = link.dial(target, {
      onConnected: (conduit) => {
        timer.cancel();
        abandon(conduit, "it was a trace");
        resolve(undefined);
      },
      onFailed: (error) => {
        timer.cancel();
        resolve(error);
      },
    });
  });
}

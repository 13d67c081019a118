/**
 * TUN6: policy and the audit log.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const POLICY = {
  TUN601: {
    slug: "server-rule-denies",
    title: "A rule denies the dial",
    means: "The sentence names the rule, and whether the server's policy or " +
      "the agent has it.",
    causes: ["The policy wants it so."],
    mend: ["`tunnel policy test --as NAME HOST:PORT` shows what decides."],
    see: "policy.md",
  },
  TUN602: {
    slug: "server-rule-missing",
    title: "No rule of the server's policy allows the dial",
    means: "What no rule allows is refused.",
    causes: ["The caller, the node, the host or the port is in no rule."],
    mend: [
      "`tunnel policy test --as NAME HOST:PORT` names the nearest rule.",
      "Add a rule to the policy file; it is read again by itself.",
    ],
    see: "policy.md",
  },
  TUN603: {
    slug: "agent-rule-denies",
    title: "A rule of the agent denies the dial",
    means: "The node's own `--deny` names this target.",
    causes: ["The node's owner wants it so."],
    mend: ["Change `--deny` on the node."],
    see: "policy.md",
  },
  TUN604: {
    slug: "agent-rule-missing",
    title: "No rule of the agent allows the dial",
    means: "The node has `--allow`, and nothing there is this target.",
    causes: ["The node's owner did not think of it."],
    mend: ["Add an `--allow` rule for it on the node."],
    see: "policy.md",
  },
  TUN606: {
    slug: "audit-unwritable",
    title: "The audit log, or the access log, cannot be written",
    means:
      "Connections go on; lines wait in memory, and what finds no room is " +
      "dropped. A log that cannot be put aside grows on; at the end of " +
      "the program its last lines are missing.",
    causes: ["A full disk.", "Its folder is gone, or not ours."],
    mend: [
      "Make room, or put right owner and mode; it is tried again by " +
      "itself.",
    ],
    see: "policy.md",
  },
  TUN610: {
    slug: "announcement-refused",
    title: "A node may not announce a service",
    means: "The policy, or a limit, does not let the node offer it.",
    causes: ["No entry of `offers` in the policy names node and service."],
    mend: ["Add it to the policy, or remove `--announce` on the node."],
    see: "policy.md",
  },
} as const satisfies Area;

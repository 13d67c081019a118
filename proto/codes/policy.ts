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
    title: "The server's policy does not allow it",
    means: "A rule denies the dial, no rule allows it, or no entry of " +
      "`offers` lets the node announce its service. The sentence names " +
      "the rule.",
    causes: [
      "The policy wants it so.",
      "The caller, the node, the host or the port is in no rule.",
    ],
    mend: [
      "`tunnel policy test --as NAME HOST:PORT` shows what decides, and " +
      "the nearest rule.",
      "Add a rule to the policy file; it is read again by itself.",
    ],
    see: "policy.md",
  },
  TUN603: {
    slug: "agent-rule-denies",
    title: "The agent's rules do not allow the dial",
    means: "The node's own `--deny` names this target, or it has `--allow` " +
      "and nothing there is this target.",
    causes: [
      "The node's owner wants it so, or did not think of it.",
    ],
    mend: [
      "Change `--deny`, or add an `--allow` rule for it on the node.",
    ],
    see: "policy.md",
  },
} as const satisfies Area;

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
    title: "A rule of the server's policy denies the dial",
    means: "The sentence names the rule.",
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
  TUN605: {
    slug: "policy-wrong",
    title: "The policy file cannot be used",
    means: "At the start the server ends; later the old policy stays in use.",
    causes: ["A typing error.", "It cannot be read."],
    mend: ["`tunnel config check --kind policy FILE`."],
    see: "policy.md",
  },
  TUN606: {
    slug: "audit-unwritable",
    title: "The audit log, or the access log, cannot be written",
    means: "Connections go on; lines wait in memory, and what finds no room " +
      "is dropped.",
    causes: ["A full disk.", "Its folder is gone, or not ours."],
    mend: ["Make room; it is tried again by itself."],
    see: "policy.md",
  },
  TUN607: {
    slug: "audit-incomplete",
    title: "The audit log, or the access log, ends without its last lines",
    means: "The program ended before they could be written.",
    causes: ["A full disk at the end."],
    mend: ["Note the gap; make room before the next start."],
    see: "policy.md",
  },
  TUN608: {
    slug: "audit-unrotated",
    title: "A full audit or access log cannot be put aside",
    means: "It grows on, beyond its limit.",
    causes: ["The folder cannot be written."],
    mend: ["Put right the folder's owner and mode."],
    see: "policy.md",
  },
  TUN609: {
    slug: "audit-written-again",
    title: "The audit log, or the access log, can be written again",
    means: "The line says how many entries were dropped meanwhile.",
    causes: ["Room was made."],
    mend: ["Nothing."],
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
  TUN611: {
    slug: "rule-wrong",
    title: "A rule cannot be read",
    means: "`--allow` or `--deny` has a text that is no rule.",
    causes: ["A typing error.", "A mask that is not one."],
    mend: ["The sentence shows the form; `tunnel help agent` has examples."],
    see: "policy.md",
  },
  TUN613: {
    slug: "dial-forbidden",
    title: "The dial is forbidden",
    means: "The server or the agent refuses it by a rule.",
    causes: ["See the sentence."],
    mend: ["`tunnel policy test --as NAME HOST:PORT`."],
    see: "policy.md",
  },
} as const satisfies Area;

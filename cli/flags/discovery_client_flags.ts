/**
 * Flags of `tunnel proxy` about being told services by a discovery server.
 *
 * @module
 */

import { choiceFlag, fileFlag, listFlag, textFlag } from "./flag.ts";
import { stateDirectoryFlag } from "./state_directory.ts";

const DISCOVERY = "Discovery";

/** What keeps nothing on disk. */
export const KEEPS_NOTHING = "none";

/** See the module description. */
export const DISCOVERY_CLIENT_FLAGS = {
  "discovery": listFlag([], {
    group: DISCOVERY,
    placeholder: "HOST:PORT,…",
    help:
      "Services as these servers tell them (tunnel server --discovery): the " +
      "agent port of a server, or a loopback address that needs no proof. " +
      "When one goes the next one is asked; when all are away, what was said " +
      "last is served.",
    defaultText: "none",
  }),
  "discovery-mode": choiceFlag(["delta", "sotw"], "delta", {
    group: DISCOVERY,
    help: "delta: be told what differs. sotw: be told all, each time.",
  }),
  "discovery-node": textFlag("", {
    group: DISCOVERY,
    placeholder: "NAME",
    help: "What this proxy is called there: the node's name, or NAME/ANYTHING.",
    defaultText: "the node's name and /proxy",
  }),
  "discovery-state": textFlag("", {
    group: DISCOVERY,
    placeholder: "FILE",
    help: "Keep what was said here, for a start without a server; " +
      `${KEEPS_NOTHING}: keep nothing.`,
    defaultText: "/var/lib/tunnel/proxy/discovery for root, else " +
      "~/.local/state/tunnel/proxy/discovery",
  }),
  "discovery-ca-cert": fileFlag({
    group: DISCOVERY,
    help: "CA of the servers' certificate, for nodes that have not joined.",
  }),
  "agent-cert": fileFlag({
    group: DISCOVERY,
    help: "Certificate of the node, shown to them.",
  }),
  "agent-key": fileFlag({ group: DISCOVERY, help: "Its private key." }),
  "state-dir": stateDirectoryFlag("agent", DISCOVERY),
} as const;

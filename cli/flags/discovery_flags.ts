/**
 * Flags about discovery: whether, to whom besides nodes, and where services come
 * from. The latter are `tunnel proxy`'s; two have another name here, because the
 * server has flags of those names already.
 *
 * @module
 */

import {
  WINDOW_MAX_MS,
  WINDOW_MIN_MS,
} from "../../server/discovery/push/debounce.ts";
import { CATALOG_FLAGS } from "./catalog_flags.ts";
import { booleanFlag, durationFlag, textFlag } from "./flag.ts";

const DISCOVERY = "Discovery (docs/discovery.md)";

const { config, kubeconfig, ...SOURCE_FLAGS } = CATALOG_FLAGS;

/** See the module description. */
export const DISCOVERY_FLAGS = {
  "discovery": booleanFlag(false, {
    group: DISCOVERY,
    help: "Tell nodes on the agent port what services there are and where " +
      "(xDS v3): node proxies, gRPC applications and Envoy. What agents " +
      "announce is among them.",
  }),
  "discovery-listen": textFlag("", {
    group: DISCOVERY,
    placeholder: "HOST:PORT",
    help:
      "Tell programs on this machine, too, without TLS and without asking " +
      "who they are; a loopback address.",
    defaultText: "none",
  }),
  "discovery-debounce-min": durationFlag(WINDOW_MIN_MS, 1, {
    group: DISCOVERY,
    help: "After a change, which is told at once, more of them wait for so " +
      "long and are told together; then for twice as long …",
  }),
  "discovery-debounce-max": durationFlag(WINDOW_MAX_MS, 1, {
    group: DISCOVERY,
    help: "… and no longer than this. Endpoints that are gone wait for a " +
      "quarter of it.",
  }),
  "discovery-config": config,
  "discovery-kubeconfig": kubeconfig,
  ...SOURCE_FLAGS,
} as const;

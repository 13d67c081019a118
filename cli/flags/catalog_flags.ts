/**
 * Flags about where services and endpoints come from. Several sources may be
 * given at once; the first one here that has a service owns it.
 *
 * @module
 */

import { ETCD_FLAGS } from "./etcd_flags.ts";
import { booleanFlag, fileFlag, listFlag, textFlag } from "./flag.ts";
import { SERVICES_URL_FLAGS } from "./services_url.ts";

const SOURCES = "Sources of services";

/** In order of precedence, etcd's last. */
export const CATALOG_FLAGS = {
  "config": fileFlag({
    once: true,
    group: SOURCES,
    help: "Services and endpoints from this .yaml or .json file, read again " +
      "whenever it changes.",
  }),
  ...SERVICES_URL_FLAGS,
  "kubernetes": booleanFlag(false, {
    group: SOURCES,
    help: "Services and EndpointSlices of the cluster that this Pod is in.",
  }),
  "kubeconfig": fileFlag({
    group: SOURCES,
    help: "The same of the cluster that this file means.",
  }),
  "master": textFlag("", {
    group: SOURCES,
    placeholder: "URL",
    help: "The same of this API server (kube-proxy 0.4), which gets no token.",
  }),
  "namespace": textFlag("", {
    group: SOURCES,
    placeholder: "NAMESPACE",
    help: "Only this one of the cluster.",
    defaultText: "all",
  }),
  ...ETCD_FLAGS,
  "etcd-servers": listFlag([], {
    group: SOURCES,
    placeholder: "URL,…",
    help: "Members of an etcd whose keys are kube-proxy 0.4's own, below " +
      "/registry/services/. --etcd-config is for these keys, too.",
  }),
} as const;

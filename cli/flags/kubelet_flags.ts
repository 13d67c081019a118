/**
 * Flags of the kubelet front end. Those about kubelets themselves have
 * kube-apiserver's names.
 *
 * @module
 */

import { booleanFlag, fileFlag, listFlag, portFlag, textFlag } from "./flag.ts";

const KUBELETS = "Kubelets (docs/kubernetes.md)";

/** See the module description. */
export const KUBELET_FLAGS = {
  "kubelet-port": portFlag(0, {
    group: KUBELETS,
    help:
      "Port where callers with a certificate talk to nodes' kubelets over " +
      "HTTPS; 0: any free port.",
    defaultText: "none",
  }),
  "kubelet-bind-address": textFlag("", {
    group: KUBELETS,
    placeholder: "ADDRESS",
    help: "Its address.",
    defaultText: "all interfaces",
  }),
  "kubelet-server-cert": fileFlag({
    group: KUBELETS,
    help: "Certificate shown to callers there.",
    defaultText: "--server-cert, or what agents are shown",
  }),
  "kubelet-server-key": fileFlag({
    group: KUBELETS,
    help: "Its private key.",
  }),
  "kubelet-server-ca-cert": fileFlag({
    group: KUBELETS,
    help: "CA of the certificates that callers must show there: whoever has " +
      "one may do on nodes what --kubelet-client-certificate may.",
    defaultText: "--server-ca-cert",
  }),
  "kubelet-client-certificate": fileFlag({
    group: KUBELETS,
    help: "Certificate shown to kubelets.",
  }),
  "kubelet-client-key": fileFlag({
    group: KUBELETS,
    help: "Its private key.",
  }),
  "kubelet-ca-file": fileFlag({
    group: KUBELETS,
    aliases: ["kubelet-certificate-authority"],
    help: "CA of kubelets' certificates, which must bear the node's name or " +
      "address.",
  }),
  "kubelet-insecure-skip-verify": booleanFlag(false, {
    group: KUBELETS,
    help: "Believe every kubelet: whoever can answer in its place on a node " +
      "reads and writes what callers say to it, logs and commands included.",
  }),
  "kubelet-localhost-ports": listFlag([], {
    group: KUBELETS,
    help:
      "Ports that are dialed on the node's loopback, whatever its address " +
      "is. yurttunnel: localhost-proxy-ports.",
  }),
  "kubelet-lookup": booleanFlag(false, {
    group: KUBELETS,
    help: "Ask the API server (--kubeconfig, or as a Pod does) which node a " +
      "pod is on and where that node's kubelet is; wants get on pods and " +
      "nodes. Without it, the address that callers use tells the node.",
  }),
} as const;

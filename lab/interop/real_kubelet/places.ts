/** Names and addresses of the stage of {@link ./stage.ts}. */

export const NODE = "edge-1";

/** The kubelet's, in the node's namespace; here it leads to the server. */
export const NODE_ADDRESS = "10.77.7.10";

export const KUBELET_PORT = 10_250;

/** Where the node reaches kube-apiserver: the Service's address. */
export const API_ADDRESS = "10.96.0.1";

/** Of the node's Pods that have not the node's own network. */
export const POD_NETWORK = "10.244.1.0/24";

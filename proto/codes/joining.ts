/**
 * TUN3: identity and joining.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const JOINING = {
  TUN302: {
    slug: "token-unknown",
    title: "The token is not good, or not any more",
    means: "The server has no such token, its time is over, all its uses are " +
      "taken, it is for another node, or the text is no token at all.",
    causes: [
      "It was revoked, or is of another server.",
      "The default of `--ttl` is short.",
      "A token is for one node, unless made with `--uses`.",
      "The machine's host name is not the name in the token.",
      "A part of the text was not copied.",
    ],
    mend: [
      "`tunnel token create` on the server makes a new one; copy the " +
      "whole line.",
      "Give `--node` as in the token, or make a token for this name.",
      "`tunnel token list` shows those that there are.",
    ],
    see: "identity.md",
  },
  TUN307: {
    slug: "name-taken",
    title: "The node's name is bound to another key",
    means: "A node of this name has joined, and this is not its key.",
    causes: ["The machine was set up again.", "Two machines have one name."],
    mend: [
      "If another machine has that name, choose a new one with `--node`.",
      "Set up again: `tunnel node forget NAME` on the server, then join again.",
    ],
    see: "identity.md",
  },
  TUN309: {
    slug: "not-joined",
    title: "This machine has not joined, or it has joined already",
    means: "There is no identity in the state directory, or only a key, and " +
      "no certificate was given in its place. Or there is one, and it was " +
      "left as it is.",
    causes: [
      "`tunnel join` was not run, or with another `--state-dir`.",
      "Joining did not end: the node waits for approval, the token was " +
      "refused, or the server was not reached.",
    ],
    mend: [
      "`tunnel node list` on the server; a node that waits: `tunnel node " +
      "approve NAME`.",
      "`tunnel token create` on the server, then `tunnel join TOKEN` here.",
      "Joined already: `tunnel agent` goes on with it; `tunnel join " +
      "--again` replaces it.",
    ],
    see: "identity.md",
  },
  TUN310: {
    slug: "node-pending",
    title: "The node waits for approval",
    means: "The server wants a person to look at each node that joins.",
    causes: ["The token was made with `--needs-approval`."],
    mend: ["`tunnel node approve NAME` on the server."],
    see: "identity.md",
  },
  TUN311: {
    slug: "node-revoked",
    title: "The node was revoked",
    means: "The server takes no link and no call of this node.",
    causes: ["`tunnel node revoke NAME` was run."],
    mend: ["`tunnel node approve NAME` on the server takes that back."],
    see: "identity.md",
  },
  TUN312: {
    slug: "node-unknown",
    title: "There is no such node",
    means: "No node of this name joined the server, or it was forgotten.",
    causes: ["A typing error.", "It joined another server."],
    mend: ["`tunnel node list` on the server; join again with a new token."],
    see: "identity.md",
  },
  TUN313: {
    slug: "duplicate-identity",
    title: "Two machines use one identity",
    means:
      "Two agents that live on have the same key: a copied machine, or a " +
      "stolen key; callers reach now one, now the other. Or two servers " +
      "have one id: agents that find them behind one address link to one " +
      "of them only.",
    causes: [
      "An image of a machine that had joined was copied.",
      "Two servers run with the same `--server-id`.",
    ],
    mend: [
      "On the copy: remove the state directory, and join with its own " +
      "name.",
      "If the key may be stolen: `tunnel node revoke NAME`.",
      "Give each server its own `--server-id`.",
    ],
    see: "identity.md",
  },
  TUN314: {
    slug: "identity-damaged",
    title: "The node's own files are damaged",
    means: "A file of the identity cannot be read, or does not fit the others.",
    causes: ["A full disk.", "Files were edited or restored in part."],
    mend: [
      "Restore the whole directory, or `tunnel join TOKEN --server HOST:PORT --again`.",
    ],
    see: "identity.md",
  },
  TUN320: {
    slug: "agent-refused",
    title: "The server does not admit an agent",
    means:
      "The agent identified itself, and gets no link or no certificate here. " +
      "The server would answer the same again: an operator has to change " +
      "something.",
    causes: [
      "The identity, the version, or a limit; the sentence says which " +
      "rule is not kept.",
      "It claims addresses or networks (`--agent-identifiers`) that it was " +
      "not granted; its own name it may serve.",
      "A CertificateSigningRequest asks for what its author may not have.",
    ],
    mend: [
      "Do what the sentence says; `tunnel node list` shows the nodes.",
      "`tunnel node approve NAME --identifiers ipv4=…` on the server.",
      "`kubectl get csr NAME -o yaml` shows what a request asks for.",
    ],
    see: "identity.md",
  },
  TUN327: {
    slug: "authority-in-use",
    title: "A change of the CA cannot take that step now",
    means: "rotate, activate and retire follow each other, and no step may " +
      "lock a node out.",
    causes: [
      "The step before was not taken, or was taken already.",
      "Nodes that still hold certificates of a CA to be retired were away.",
    ],
    mend: [
      "`tunnel ca show` says how far the change is.",
      "Wait for the nodes that the line names, or forget those that are gone.",
      "`tunnel ca retire ID --force` locks them out.",
    ],
    see: "identity.md",
  },
  TUN333: {
    slug: "left-open",
    title: "A setting leaves something open to others",
    means: "The program runs by its flags. The line says what is open: " +
      "agents that need no certificate or may use another's id, kubelets " +
      "that are not verified, services on an outer address, or keys of " +
      "the CA that lie in the store as they are.",
    causes: [
      "The program was told so, or was not given what would close it.",
    ],
    mend: [
      "Agents: give `--state-dir` (nodes join) or `--cluster-ca-cert`; " +
      "issue each its own certificate, then `--node-binding=enforce`.",
      "Kubelets: give `--kubelet-ca`.",
      "Services: leave `--bind-address` out, or use a firewall.",
      "Keys: give `--state-key-file` on all servers.",
    ],
    see: "security.md",
  },
} as const satisfies Area;

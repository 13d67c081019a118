/**
 * TUN8: servers, their state, and each other.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const SERVERS = {
  TUN801: {
    slug: "state-unusable",
    title: "The server's state cannot be used",
    means:
      "A record cannot be read, the directory is not this program's, the " +
      "key of `--state-key-file` does not fit, or the state cannot be " +
      "copied like that. Nothing was changed, or the sentence says where " +
      "a copy is.",
    causes: [
      "A file was edited, or another version wrote it.",
      "The owner or mode; a wrong `--state-dir`.",
      "The key is another file than that of the other servers, or others " +
      "may read it.",
      "The place of a copy is not empty, or servers change what is " +
      "copied.",
    ],
    mend: [
      "`tunnel state check`; restore a backup.",
      "`chmod 0700` and `chown`, or another `--state-dir`.",
      "Give the same key file on all servers, with mode 0600.",
    ],
    see: "identity.md",
  },
  TUN802: {
    slug: "state-away",
    title: "etcd, Kubernetes or the store of the state does not answer",
    means: "What was read stays in use; nothing new can be kept meanwhile. " +
      "Servers may not learn of each other, so dials for agents of other " +
      "servers may fail. A service that is to be registered is tried " +
      "again.",
    causes: [
      "etcd or the API server is away, or this account may not do that.",
      "User, password or certificate.",
    ],
    mend: [
      "`etcdctl endpoint health` with the same files, `kubectl get --raw " +
      "/readyz`.",
      "`kubectl auth can-i --list` as the account of the server or agent.",
      "`tunnel status` lists the servers.",
    ],
    see: "operations.md",
  },
} as const satisfies Area;

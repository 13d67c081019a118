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
    means: "A record cannot be read or is not what it should be.",
    causes: ["A file was edited.", "Another version wrote it.", "Permissions."],
    mend: ["`tunnel state check`; restore a backup."],
    see: "identity.md",
  },
  TUN802: {
    slug: "state-away",
    title: "The store of the server's state does not answer",
    means: "What was read stays in use; nothing new can be kept meanwhile. " +
      "Servers may not learn of each other, so dials for agents of other " +
      "servers may fail.",
    causes: ["etcd or the API server is away."],
    mend: [
      "`etcdctl endpoint health`, `kubectl get --raw /readyz`.",
      "`tunnel status` lists the servers.",
    ],
    see: "operations.md",
  },
  TUN803: {
    slug: "keys-readable",
    title: "Keys of the CA lie in the store as they are",
    means: "Whoever can read the store can issue certificates.",
    causes: ["`--state-key-file` is not given."],
    mend: ["Give `--state-key-file` on all servers."],
    see: "security.md",
  },
  TUN804: {
    slug: "state-not-ours",
    title: "The directory is not this program's",
    means: "Others may read or write it, or it holds something else.",
    causes: ["The owner or mode.", "A wrong `--state-dir`."],
    mend: ["`chmod 0700` and `chown`, or another `--state-dir`."],
    see: "identity.md",
  },
  TUN809: {
    slug: "kubernetes-failed",
    title: "The Kubernetes API server cannot be asked",
    means:
      "A request for leases, services, certificates or tokens failed; the " +
      "sentence has its answer, and it is tried again.",
    causes: ["It is away.", "The account may not do that."],
    mend: [
      "`kubectl auth can-i --list` as the account of the server or agent.",
    ],
    see: "kubernetes.md",
  },
  TUN810: {
    slug: "etcd-failed",
    title: "etcd cannot be asked",
    means:
      "The request failed; the sentence has its answer. A service that is " +
      "to be registered is tried again.",
    causes: [
      "It is away.",
      "User, password or certificate.",
      "It forbids the key.",
    ],
    mend: ["`etcdctl endpoint health` with the same files."],
    see: "services.md",
  },
  TUN811: {
    slug: "server-running",
    title: "Another server uses this state",
    means: "One directory is for one server at a time.",
    causes: ["It runs already."],
    mend: [
      "Stop it, or give another `--state-dir`; `tunnel upgrade` replaces it.",
    ],
    see: "operations.md",
  },
  TUN812: {
    slug: "server-not-here",
    title: "No server has run here with this state directory",
    means: "The directory that the flags name is not there.",
    causes: [
      "The server has never been started.",
      "It was started with another `--state-dir`, or as another user.",
    ],
    mend: ["Start `tunnel server`, or name its directory."],
    see: "troubleshooting.md",
  },
  TUN813: {
    slug: "state-copy",
    title: "The state cannot be copied like that",
    means: "Nothing was changed, or the sentence says where the copy is.",
    causes: [
      "The place of the copy is not empty, or cannot be written.",
      "A copy was interrupted, or servers change what is copied.",
    ],
    mend: ["Name an empty place; the sentence says what else."],
    see: "identity.md",
  },
  TUN814: {
    slug: "state-key",
    title: "The key of the server's state cannot be used",
    means: "Records are encrypted with the file of `--state-key-file`.",
    causes: [
      "The file cannot be read, others may read it, or it is no key.",
      "It is another file than that of the other servers.",
    ],
    mend: ["Give the same file on all servers, with mode 0600."],
    see: "security.md",
  },
} as const satisfies Area;

/**
 * Where a store is, and what its secrets are encrypted with, as flags say it.
 *
 * @module
 */

import type { EtcdOptions } from "../etcd/connect.ts";
import type { KubernetesOptions } from "../kubernetes/connect.ts";

/** A place that servers have in common. */
export type StoreLocation =
  /** One server's, or several servers' on a common file system. */
  | { readonly kind: "directory"; readonly root: string }
  | {
    readonly kind: "etcd";
    readonly etcd: EtcdOptions;
    /** Of every key; begins and ends with a slash. */
    readonly prefix: string;
  }
  | {
    readonly kind: "kubernetes";
    readonly kubernetes: KubernetesOptions;
    /** Absent: the one that this process runs, or works, in. */
    readonly namespace?: string;
  };

/** What private keys are encrypted with where they are kept. */
export type SealingKeySource =
  | { readonly kind: "file"; readonly path: string }
  /** The user said so: whoever can read the store can issue certificates. */
  | { readonly kind: "none" };

/**
 * Of a Pod's manifest what a kubelet makes a container of.
 *
 * @module
 */

/** Of a container, or of all of a Pod. */
interface SecurityContext {
  readonly runAsUser?: number;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly capabilities?: { readonly drop?: readonly string[] };
}

export interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
  }[];
  readonly resources?: {
    readonly limits?: { readonly memory?: string; readonly cpu?: string };
  };
  readonly securityContext?: SecurityContext;
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

interface Projected {
  readonly serviceAccountToken: {
    readonly path: string;
    readonly audience: string;
  };
}

export interface Volume {
  readonly name: string;
  readonly hostPath?: { readonly path: string };
  readonly emptyDir?: object;
  readonly secret?: {
    readonly secretName: string;
    readonly defaultMode?: number;
    /** Absent: all, by their keys. */
    readonly items?: readonly { readonly key: string; readonly path: string }[];
  };
  readonly configMap?: { readonly name: string };
  readonly projected?: { readonly sources: readonly Projected[] };
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
}

/** A Pod, or what makes Pods. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly namespace?: string };
  readonly spec: PodSpec & { readonly template?: { readonly spec: PodSpec } };
}

/** Of a quantity in Mi or Gi, as all of ours are. */
export function bytesOf(quantity: string): number {
  const [, number, unit] = /^(\d+)([MG])i$/.exec(quantity) ?? [];
  if (number === undefined) throw new TypeError(`not in Mi or Gi: ${quantity}`);
  return Number(number) * 1024 ** (unit === "M" ? 2 : 3);
}

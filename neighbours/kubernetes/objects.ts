/**
 * The Kubernetes objects that this project reads and writes, as far as it does.
 *
 * Fields are optional where the API leaves them out when empty. What is not
 * named here travels untouched: an object that is written back is the one that
 * was read.
 *
 * @module
 */

/** `metadata` of everything that has a name. */
export interface ObjectMeta {
  readonly name?: string;
  /** The server appends five characters. */
  readonly generateName?: string;
  /** Absent for cluster-wide objects. */
  readonly namespace?: string;
  readonly uid?: string;
  /** Opaque; two of one collection can be compared when both are digits. */
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What can be listed and watched. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** One page of a collection. */
export interface ObjectList<T> {
  readonly metadata: {
    readonly resourceVersion?: string;
    /** The position of the next page; absent or empty on the last one. */
    readonly continue?: string;
  };
  readonly items: readonly T[] | null;
}

/** `v1 Status`: how the API says that something went wrong. */
export interface StatusObject {
  readonly kind: "Status";
  readonly message?: string;
  /** One word, such as `NotFound`. */
  readonly reason?: string;
  /** The HTTP status. */
  readonly code?: number;
  readonly details?: { readonly retryAfterSeconds?: number };
}

/** `authentication.k8s.io/v1`. */
export interface TokenReview {
  readonly apiVersion: "authentication.k8s.io/v1";
  readonly kind: "TokenReview";
  readonly spec: {
    readonly token: string;
    readonly audiences: readonly string[];
  };
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    /** Those of `spec.audiences` that the token is meant for. */
    readonly audiences?: readonly string[];
    readonly user?: UserInfo;
  };
}

/** `coordination.k8s.io/v1`. */
export interface Lease extends KubernetesObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    /** MicroTime: RFC 3339 with six digits behind the second. */
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

/** Who asks an API server. */
interface UserInfo {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** `certificates.k8s.io/v1`. */
export interface CertificateSigningRequest extends KubernetesObject {
  /** The author is the server's to fill in. */
  readonly spec: UserInfo & {
    /** Base64 of the request's PEM text. */
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly expirationSeconds?: number;
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    /** Base64 of the chain's PEM text. */
    readonly certificate?: string;
  };
}

/** `v1`. */
export interface KubernetesService extends KubernetesObject {
  readonly spec?: {
    readonly type?: string;
    /** `None` for a headless service. */
    readonly clusterIP?: string;
    readonly clusterIPs?: readonly string[];
    readonly externalName?: string;
    /** `ClientIP` or `None`. */
    readonly sessionAffinity?: string;
    readonly sessionAffinityConfig?: {
      readonly clientIP?: { readonly timeoutSeconds?: number };
    };
    /** For example `PreferClose`: endpoints in the client's zone first. */
    readonly trafficDistribution?: string;
    readonly ports?: readonly {
      readonly name?: string;
      readonly protocol?: string;
      readonly port: number;
      readonly targetPort?: number | string;
      readonly nodePort?: number;
      readonly appProtocol?: string;
    }[];
  };
  readonly status?: {
    readonly loadBalancer?: {
      readonly ingress?: readonly {
        readonly ip?: string;
        readonly hostname?: string;
      }[];
    };
  };
}

/** `discovery.k8s.io/v1`. */
export interface EndpointSlice extends KubernetesObject {
  readonly addressType: "IPv4" | "IPv6" | "FQDN";
  readonly endpoints?:
    | readonly {
      readonly addresses: readonly string[];
      readonly conditions?: {
        /** Absent means ready. */
        readonly ready?: boolean;
        readonly serving?: boolean;
        readonly terminating?: boolean;
      };
      readonly nodeName?: string;
      readonly zone?: string;
      /** The audiences of the token. */
      readonly hints?: {
        readonly forZones?: readonly { readonly name: string }[];
      };
    }[]
    | null;
  readonly ports?:
    | readonly {
      readonly name?: string;
      readonly protocol?: string;
      readonly port?: number;
    }[]
    | null;
}

/** `v1`. */
export interface KubernetesNode extends KubernetesObject {
  readonly status?: {
    readonly addresses?: readonly {
      /** `InternalIP`, `ExternalIP`, `Hostname` … */
      readonly type: string;
      readonly address: string;
    }[];
    readonly daemonEndpoints?: {
      /** Spelled with a capital, alone among all fields. */
      readonly kubeletEndpoint?: { readonly Port?: number };
    };
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
    }[];
  };
}

/** `v1`. */
export interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}

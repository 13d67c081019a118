/**
 * Lists beside nodes and conduits: services, clients of discovery, certificates,
 * the audit log, the configuration.
 *
 * @module
 */

/** `GET /v1/services` */
export interface ServicesAnswer {
  readonly services: readonly {
    readonly name: string;
    readonly source: string;
    readonly ports: readonly string[];
    readonly endpoints: readonly {
      readonly address: string;
      readonly node?: string;
      readonly isReady: boolean;
    }[];
    readonly problem?: string;
  }[];
  readonly total: number;
}

/** `GET /v1/discovery` */
export interface DiscoveryAnswer {
  readonly clients: readonly {
    readonly name: string;
    readonly form: string;
    readonly mode: string;
    readonly since?: string;
    readonly state: "in sync" | "waiting" | "refused";
    readonly problem?: string;
    readonly kinds: readonly {
      readonly kind: string;
      readonly resources: number;
      readonly state: string;
    }[];
  }[];
}

/** `GET /v1/certificates`: the soonest to expire first. */
export interface CertificatesAnswer {
  readonly certificates: readonly {
    /** What it is used for, such as `frontend`, `authority`, `node edge-7`. */
    readonly use: string;
    readonly subject: string;
    readonly issuer: string;
    readonly notBefore: string;
    readonly notAfter: string;
    readonly renewal: "by itself" | "by hand";
    readonly problem?: string;
  }[];
}

/** `GET /v1/audit`, with `?limit=`: newest first; lines of the audit log. */
export interface AuditAnswer {
  readonly entries: readonly Readonly<Record<string, unknown>>[];
}

/** `GET /v1/config` */
export interface ConfigAnswer {
  readonly flags: readonly {
    readonly name: string;
    /** Secrets are not shown. */
    readonly value: string;
    readonly from: "default" | "flag" | "environment" | "file";
  }[];
}

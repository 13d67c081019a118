/**
 * Where an API server is and what to show it, whatever says so: the Pod this
 * process runs in, or a kubeconfig file.
 *
 * Everything here may change under a running process (tokens and certificates
 * rotate), so it is asked for again before each request; how rarely files are
 * really read is the implementation's business.
 *
 * @module
 */

/** How long something read from a file is believed before it is read again. */
export const REREAD_MS = 60_000;

/** What a request shows. All absent: nothing. */
export interface Credential {
  /** Value of the `authorization` header. */
  readonly authorization?: string;
  /** A certificate chain and its key, PEM. */
  readonly keyPair?: { readonly cert: string; readonly key: string };
}

export interface KubernetesAccess {
  /** Such as `https://10.96.0.1:443`, without a slash at the end. */
  readonly server: string;
  /** Where namespaced objects are looked for when nobody says where. */
  readonly namespace: string;
  /** Of the HTTP proxy on the way, if the configuration names one. */
  readonly proxyUrl?: string;
  /**
   * PEM of the CAs that the server's certificate may be of; absent when public
   * ones are meant.
   */
  authority(): string | undefined;
  /** @throws {KubernetesConfigError} */
  credential(): Promise<Credential>;
  /** The server answered 401: what is shown next must be fresh. */
  rejected(): void;
}

/**
 * TUN2: TLS and certificates.
 *
 * @module
 */

import type { Area } from "./problem.ts";

/** See the module description. */
export const TLS = {
  TUN201: {
    slug: "peer-certificate-expired",
    title: "A certificate is not valid at this time",
    means: "No connection was made. By this machine's clock the certificate " +
      "has expired, or begins later.",
    causes: [
      "The certificate was not renewed.",
      "This machine's clock is wrong, or the issuer's was.",
    ],
    mend: [
      "`date -u` on both machines: compare the clocks; " +
      "`timedatectl set-ntp true`.",
      "Renew the certificate of the other end; a node renews its own by " +
      "itself while its agent runs.",
    ],
    see: "identity.md",
  },
  TUN202: {
    slug: "certificate-expires",
    title: "A certificate expires soon, has expired, or was not renewed",
    means: "The program works with it until then. The line says which " +
      "certificate and when; a renewal that failed is tried again.",
    causes: [
      "Certificates of files are renewed by hand or by another program.",
      "The server is away, or the node was revoked or forgotten: see the " +
      "line.",
    ],
    mend: [
      "A certificate of a file: put a new one at the same path; it is read " +
      "by itself.",
      "`tunnel status` says what expires when.",
    ],
    see: "operations.md",
  },
  TUN203: {
    slug: "certificate-unusable",
    title: "A certificate or key file cannot be used, or is odd",
    means: "A file is not there, is not PEM, or holds something else; the " +
      "key is another certificate's; or the certificate is not for this " +
      "end of a connection. One that is only odd is used as it is.",
    causes: [
      "A wrong path.",
      "Key and certificate are swapped, or only one of them was renewed.",
      "Servers need `serverAuth` in the extended key usage, clients " +
      "`clientAuth`.",
      "A chain that is not complete, or has others' certificates.",
    ],
    mend: [
      "`openssl x509 -in FILE -noout -text` shows a certificate.",
      "Put both files of one pair there.",
    ],
    see: "operations.md",
  },
  TUN205: {
    slug: "peer-untrusted",
    title: "The other end's certificate is of a CA that is not trusted here",
    means: "No connection was made: the other end may be anybody.",
    causes: [
      "The CA file here is of another server.",
      "The server has a new CA, and this node was away when it changed.",
    ],
    mend: [
      "Give the CA of the server: `--ca-cert` (its `ca.pem`).",
      "A joined node: `tunnel join --again TOKEN`.",
    ],
    see: "identity.md",
  },
  TUN206: {
    slug: "our-certificate-refused",
    title: "The other end refuses our certificate",
    means: "The other end ended the handshake because of what we showed.",
    causes: [
      "It trusts another CA.",
      "Our certificate has expired by its clock.",
    ],
    mend: [
      "Look at the other end's log: it names the reason.",
      "A joined node: `tunnel join --again TOKEN`.",
    ],
    see: "identity.md",
  },
  TUN207: {
    slug: "wrong-name",
    title: "The server's certificate is for another name",
    means: "No connection was made: the name that was called is not in the " +
      "certificate.",
    causes: ["It is called by an address or a name that it does not know."],
    mend: [
      "Call it by a name of its certificate.",
      "Or issue it a certificate with this name.",
    ],
    see: "operations.md",
  },
  TUN208: {
    slug: "not-tls",
    title: "Something else listens there",
    means: "The other end does not speak TLS, or none of the tunnel's " +
      "protocols.",
    causes: [
      "A wrong port: agents connect to `--agent-port`, 8091 unless said.",
      "A proxy or a load balancer answers in the server's place.",
    ],
    mend: [
      "Compare host and port with the server's first log lines.",
      "Let load balancers pass TCP through.",
    ],
    see: "operations.md",
  },
  TUN209: {
    slug: "handshake-unfinished",
    title: "A TLS handshake did not come to its end",
    means: "The connection was made, and then the other end closed it, was " +
      "silent, or had no version or protocol in common with us.",
    causes: [
      "A firewall or proxy on the way inspects TLS and refuses it.",
      "The port belongs to another program, which may not speak TLS.",
    ],
    mend: [
      "`tunnel doctor agent` tries each step by itself.",
      "Let the server's `--agent-port` through without inspection.",
      "Correct the port: agents connect to `--agent-port`, 8091 unless said.",
    ],
    see: "operations.md",
  },
  TUN210: {
    slug: "alpn-changed",
    title: "The link speaks Konnectivity's protocol only",
    means: "The link works. A stalled connection may hold up others, and " +
      "`--announce` has no effect.",
    causes: [
      "A load balancer ends TLS, or strips ALPN.",
      "The server is Konnectivity's.",
    ],
    mend: ["Let the load balancer pass TCP through; use a server of ours."],
    see: "operations.md",
  },
  TUN212: {
    slug: "kubelets-unverified",
    title: "Kubelets' certificates are not verified",
    means: "Whoever can answer in a kubelet's place reads and writes what " +
      "callers say to it.",
    causes: ["The server was told not to verify them."],
    mend: [
      "Give `--kubelet-ca` with the CA that signs kubelets' certificates.",
    ],
    see: "kubernetes.md",
  },
  TUN215: {
    slug: "certificate-missing-at-peer",
    title: "A certificate is wanted, and none was shown",
    means: "The port asks for client certificates, and the client had none.",
    causes: ["`--agent-cert` or `--client-cert` was not given."],
    mend: ["Give certificate and key, or join the node first."],
    see: "identity.md",
  },
} as const satisfies Area;

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
    title: "The other end's certificate has expired",
    means: "No connection was made. By this machine's clock the certificate " +
      "is too old.",
    causes: ["Nobody renewed it.", "This machine's clock is wrong."],
    mend: [
      "`date -u` on both machines: compare the clocks.",
      "Renew the certificate of the other end; a node renews its own by " +
      "itself while its agent runs.",
    ],
    see: "identity.md",
  },
  TUN202: {
    slug: "certificate-expires",
    title: "A certificate expires soon, or has expired",
    means: "The program works until then. The line says which certificate " +
      "and when.",
    causes: [
      "Certificates of files are renewed by hand or by another program.",
      "One that renews itself could not: see the lines before.",
    ],
    mend: ["Put a new certificate at the same path: it is read by itself."],
    see: "operations.md",
  },
  TUN203: {
    slug: "certificate-unusable",
    title: "A certificate or key file cannot be used, or is odd",
    means: "A file is not there, is not PEM, or holds something else. A " +
      "certificate that is only odd is used as it is.",
    causes: [
      "A wrong path.",
      "Key and certificate are swapped.",
      "A chain that is not complete, or has others' certificates.",
    ],
    mend: ["`openssl x509 -in FILE -noout -text` shows a certificate."],
    see: "operations.md",
  },
  TUN204: {
    slug: "key-mismatch",
    title: "Certificate and key do not belong together",
    means: "The certificate is for another key than the one in the key file.",
    causes: ["One of the two files was renewed, the other was not."],
    mend: ["Put both files of one pair there."],
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
    title: "The other end does not speak TLS",
    means: "Something answered that is no TLS server, or no TLS client.",
    causes: [
      "A wrong port: agents connect to `--agent-port`, 8091.",
      "A proxy answers in the server's place.",
    ],
    mend: ["Compare host and port with the server's first log lines."],
    see: "operations.md",
  },
  TUN209: {
    slug: "handshake-unfinished",
    title: "A TLS handshake did not come to its end",
    means: "The connection was made, and then the other end closed it, was " +
      "silent, or had no version or protocol in common with us.",
    causes: [
      "A middlebox inspects or blocks the connection.",
      "The port belongs to another program.",
    ],
    mend: ["`tunnel doctor agent` tries each step by itself."],
    see: "operations.md",
  },
  TUN210: {
    slug: "alpn-changed",
    title: "Something on the way changes ALPN",
    means: "The link works by Konnectivity's protocol, in which a stalled " +
      "connection may hold up others.",
    causes: ["A load balancer ends TLS, or strips ALPN."],
    mend: ["Let the load balancer pass TCP through."],
    see: "operations.md",
  },
  TUN211: {
    slug: "not-yet-valid",
    title: "A certificate is not valid yet",
    means: "By the clock here the certificate begins later.",
    causes: ["The clock here is behind.", "The issuer's clock is ahead."],
    mend: ["`date -u` on both machines; `timedatectl set-ntp true`."],
    see: "identity.md",
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
  TUN213: {
    slug: "wrong-usage",
    title: "A certificate is not for this end of a connection",
    means: "Servers need `serverAuth` in the extended key usage, clients " +
      "`clientAuth`.",
    causes: ["One certificate is used at both ends."],
    mend: ["Issue one with the usage that the line names."],
    see: "operations.md",
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

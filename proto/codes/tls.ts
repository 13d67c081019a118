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
    means: "A file is missing, is not PEM, or holds something else; the " +
      "key is another certificate's; or the certificate is not for this " +
      "end of a connection. A file that is only odd is used.",
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
    means: "No connection was made: the other end may be an impostor.",
    causes: [
      "The CA file or the token here belongs to another server.",
      "The server has a new CA, and this node was away when it changed.",
    ],
    mend: [
      "Give the CA of the server: `--ca-cert` (its `ca.pem`).",
      "Compare `--server` with what `tunnel token create` printed.",
      "A joined node: `tunnel join TOKEN --server HOST:PORT --again`.",
    ],
    see: "identity.md",
  },
  TUN206: {
    slug: "our-certificate-refused",
    title: "A certificate was refused, or none was shown",
    means: "The other end ended the handshake because of what this end " +
      "showed, or this end did because the other showed no certificate.",
    causes: [
      "The end that refuses trusts another CA.",
      "The certificate has expired by the other end's clock.",
      "`--agent-cert` or `--client-cert` was not given.",
    ],
    mend: [
      "Look at the other end's log: it names the reason.",
      "Give certificate and key, or join the node first.",
      "A joined node: `tunnel join TOKEN --server HOST:PORT --again`.",
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
    title: "No TLS with what answers there",
    means: "The connection was made, and then the other end spoke something " +
      "else, had no version or protocol in common with us, closed it, or " +
      "was silent.",
    causes: [
      "A wrong port: agents connect to `--agent-port`, 8091 by default.",
      "A proxy or a load balancer answers in the server's place.",
      "A firewall or proxy on the way inspects TLS and refuses it.",
    ],
    mend: [
      "Compare host and port with the server's first log lines.",
      "`tunnel doctor agent` tries each step by itself.",
      "Let load balancers pass TCP through, and `--agent-port` without " +
      "inspection.",
    ],
    see: "operations.md",
  },
  TUN210: {
    slug: "alpn-changed",
    title: "The other end speaks Konnectivity's protocol only",
    means: "The link works. A stalled connection may hold up others, and " +
      "`--announce` has no effect; Konnectivity's agent cuts datagrams " +
      "at 4096 bytes, and those are dropped rather than passed on " +
      "damaged.",
    causes: [
      "A load balancer ends TLS, or strips ALPN.",
      "The server or the agent is Konnectivity's.",
    ],
    mend: [
      "Let the load balancer pass TCP through.",
      "Use a server and an agent of ours.",
    ],
    see: "operations.md",
  },
} as const satisfies Area;

import { assert, assertEquals, assertThrows } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { CertificateAuthority } from "../../../platform/pki/authority.ts";
import {
  exportPrivateKey,
  generateKeyPair,
} from "../../../platform/pki/key_pair.ts";
import type {
  CertificatePair,
  CertificateSpec,
} from "../../../tests/support/certificates/throwaway_ca.ts";
import { ThrowawayCa } from "../../../tests/support/certificates/throwaway_ca.ts";
import type { TlsMaterial } from "../trust/credentials.ts";
import {
  clientHandshakeError,
  serverHandshakeError,
} from "../trust/tls_errors.ts";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import { RecordedErrors } from "../../../tests/support/watch/recorded_errors.ts";
import { slip } from "../../../tests/support/watch/recorded_faults.ts";
import { rawSsl } from "../../../tests/support/peers/raw_ssl.ts";
import {
  clientContext,
  LIBSSL,
  type PairOptions,
  securePair,
  serverContext,
} from "../../../tests/support/memory/secure_pair.ts";
import type { SecureRole } from "./secure_context.ts";
import { SecureSession } from "./secure_session.ts";
import { SslError } from "../trust/ssl_error.ts";

const all = await certificates();
const NOBODY: TlsMaterial = { cert: "", key: "", ca: "" };
const server = { material: { ...all.server, ca: all.ca } };
const client = { material: { ...NOBODY, ca: all.ca } };
const known = { material: { ...all.client, ca: all.ca } };
const asking: SecureRole = { kind: "server", clientCertificate: "required" };

/** A test of what needs the library. */
function test(name: string, fn: () => void | Promise<void>): void {
  Deno.test({ name, fn, ignore: LIBSSL === undefined });
}

/** What came of a handshake at both ends: `complete` or a code. */
function shake(options: PairOptions): { client: unknown; server: unknown } {
  using pair = securePair(options);
  const { client, server } = pair.doHandshake();
  return { client: wordOf(client), server: wordOf(server) };
}

function wordOf(outcome: unknown): unknown {
  return outcome instanceof SslError ? outcome.code : outcome;
}

const COMPLETE = { client: "complete", server: "complete" };

for (
  const [minVersion, number] of [["TLSv1.3", 0x304], [
    "TLSv1.2",
    0x303,
  ]] as const
) {
  test(`both ends shake hands and know each other, ${minVersion}`, () => {
    const raw = rawSsl();
    // The client's version bounds it from above, whoever is the server.
    const context = clientContext({ ...known, alpn: ["b", "a"] }, raw.library);
    raw.limitVersion(context, number);
    const asked = serverContext({ ...server, role: asking, alpn: ["a", "b"] });
    for (const step of [1, 7, 1_000, Infinity]) {
      using pair = raw.pair(context, asked);
      pair.doHandshake(step);
      pair.connect();
      assertEquals(raw.versionOf(pair.client.session), number);
      const [mine, theirs] = [pair.client.session, pair.server.session];
      assertEquals([mine.alpn, theirs.alpn], ["a", "a"]);
      assertEquals(theirs.serverName, "localhost");
      assertEquals(subjectOf(theirs.peerCertificate), "CN=node1");
      assertEquals(subjectOf(mine.peerCertificate), "CN=tunnel-server");
      assertEquals(mine.output.length, 0, "nothing is left to say");
      assertEquals(theirs.output.length, 0, "no tickets");
    }
  });
}

function subjectOf(der: Uint8Array<ArrayBuffer>): string {
  return new X509Certificate(der).subject;
}

test("the server's preference decides on the protocol, if there is one in common", () => {
  const alpnOf = (mine: string[], theirs: string[]) => {
    using pair = securePair({
      client: { ...client, alpn: mine },
      server: { ...server, alpn: theirs },
    });
    const outcomes = pair.doHandshake();
    return outcomes.client === "complete" && outcomes.server === "complete"
      ? [pair.client.session.alpn, pair.server.session.alpn]
      : [wordOf(outcomes.client), wordOf(outcomes.server)];
  };
  assertEquals(alpnOf(["http/1.1", "h2"], ["h2", "http/1.1"]), ["h2", "h2"]);
  assertEquals(alpnOf(["h2"], ["x", "h2"]), ["h2", "h2"]);
  assertEquals(alpnOf([], ["h2"]), ["", ""]);
  assertEquals(alpnOf(["h2"], []), ["", ""]);
  // Neither a beginning nor a longer one is the same.
  for (const other of ["h", "h2c", "2", "\x02h2"]) {
    assertEquals(alpnOf([other], ["h2"]), [
      "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
      "ERR_SSL_NO_APPLICATION_PROTOCOL",
    ]);
  }
  const long = "x".repeat(255);
  assertEquals(alpnOf([long, "y"], ["y", long]), ["y", "y"]);
  assertEquals(alpnOf([long], [long]), [long, long]);
});

test("another name is shown another certificate", async () => {
  const ca = await ThrowawayCa.create("names");
  const pairFor = (name: string) =>
    ca.issue({ commonName: name, usage: "server", names: [name] });
  const context = async (name: string) =>
    serverContext({ material: { ...await pairFor(name), ca: ca.cert } });
  const [one, other] = [await pairFor("one.test"), await context("other.test")];
  const asked: string[] = [];
  for (const serverName of ["one.test", "other.test"]) {
    using pair = securePair({
      client: { material: { ...NOBODY, ca: ca.cert } },
      server: { material: { ...one, ca: ca.cert } },
      serverName,
      contextFor: (name) => {
        asked.push(name);
        return name === "other.test" ? other : undefined;
      },
    });
    pair.connect();
    const { peerCertificate } = pair.client.session;
    assertEquals(subjectOf(peerCertificate), `CN=${serverName}`);
    assertEquals(pair.server.session.serverName, serverName);
  }
  assertEquals(asked, ["one.test", "other.test"]);
});

test("who fails to name a certificate fails alone", () => {
  using recorded = new RecordedErrors();
  using pair = securePair({ client, server, contextFor: slip });
  assert(pair.doHandshake().server instanceof SslError);
  assertEquals(recorded.errors, [{ where: "callback", message: "a slip" }]);
  assertEquals(shake({ client, server }), COMPLETE);
});

test("a name that is no text is one that nobody has", () => {
  const raw = rawSsl();
  const asked: string[] = [];
  const session = new SecureSession(clientContext(client, raw.library), {
    serverName: "localhost",
  });
  raw.sayServerName(new Uint8Array([0x61, 0xff, 0xfe, 0x80, 0]));
  using pair = raw.pairOf(
    session,
    new SecureSession(serverContext(server), {
      contextFor: (name) => {
        asked.push(name);
        return undefined;
      },
    }),
  );
  pair.connect();
  assertEquals(asked.length, 1);
  assertEquals(pair.server.session.serverName, asked[0]);
});

test("a server is who the name says, or nobody", async () => {
  const ca = await ThrowawayCa.create("names");
  const issue = (names: readonly string[], commonName = "server") =>
    ca.issue({ commonName, usage: "server", names });
  const shown = async (
    pair: Promise<CertificatePair>,
    serverName: string,
  ) =>
    shake({
      client: { material: { ...NOBODY, ca: ca.cert } },
      server: { material: { ...await pair, ca: "" } },
      serverName,
    }).client;
  const wrong = "ERR_TLS_CERT_ALTNAME_INVALID";
  const own = issue(["a.test", "*.b.test", "127.0.0.1", "::1", "x*.c.test"]);
  for (
    const name of [
      ...["a.test", "A.Test", "a.test.", "x.b.test", "127.0.0.1", "::1"],
      "0:0:0:0:0:0:0:1",
    ]
  ) assertEquals(await shown(own, name), "complete", name);
  for (
    const name of [
      ...["b.test", "x.y.b.test", "xa.test", "127.0.0.2", "::2", "a.test.x"],
      ...["xy.c.test", "server", "a", "test", "*.b.test.x"],
    ]
  ) assertEquals(await shown(own, name), wrong, name);
  // A name in the subject is no name (RFC 9525 §2), nor is one of another kind.
  assertEquals(await shown(issue([], "a.test"), "a.test"), wrong);
  assertEquals(await shown(issue(["b.test"], "a.test"), "a.test"), wrong);
  assertEquals(await shown(issue([], "127.0.0.1"), "127.0.0.1"), wrong);
  assertEquals(await shown(issue(["*.0.0.1"]), "127.0.0.1"), wrong);
});

test("who has no name to expect does not connect", () => {
  // To the library these are any server, any below it, and the first part.
  for (const serverName of ["", ".", ".test", "localhost\0.evil.test"]) {
    assertThrows(
      () => new SecureSession(clientContext(client), { serverName }),
      SslError,
      "no name to verify a server by",
    );
  }
  assertThrows(() => new SecureSession(clientContext(client)), SslError);
  assertEquals(shake({ client, server }), COMPLETE, "nothing is left behind");
});

const DAY_MS = 24 * 3600 * 1000;

/** From and until when, in days from now. */
function term(from: number, until: number) {
  return {
    notBefore: new Date(Date.now() + from * DAY_MS),
    notAfter: new Date(Date.now() + until * DAY_MS),
  };
}

const otherCa = await ThrowawayCa.create("other CA");

const FAULTS: Readonly<
  Record<
    string,
    (ca: ThrowawayCa, spec: CertificateSpec) => Promise<CertificatePair>
  >
> = {
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY untrusted-certificate": (_ca, spec) =>
    otherCa.issue(spec),
  "CERT_HAS_EXPIRED expired-certificate": (ca, spec) =>
    ca.issue({ ...spec, ...term(-2, -1) }),
  "CERT_NOT_YET_VALID not-yet-valid-certificate": (ca, spec) =>
    ca.issue({ ...spec, ...term(1, 2) }),
  "INVALID_PURPOSE wrong-usage-certificate": (ca, spec) =>
    ca.issue({ ...spec, usage: spec.usage === "client" ? "server" : "client" }),
  "DEPTH_ZERO_SELF_SIGNED_CERT untrusted-certificate": () =>
    selfSigned("localhost"),
};

for (const [codes, issue] of Object.entries(FAULTS)) {
  test(`a certificate is refused: ${codes}`, async () => {
    const [code, failure] = codes.split(" ");
    const ca = await ThrowawayCa.create("test CA");
    const forServers = {
      commonName: "s",
      usage: "server",
      names: ["localhost"],
    } as const;
    const bad = await issue(ca, forServers);
    using toClient = securePair({
      client: { material: { ...NOBODY, ca: ca.cert } },
      server: { material: { ...bad, ca: "" } },
    });
    const seen = toClient.doHandshake().client as SslError;
    assertEquals(seen.code, code);
    assertEquals(clientHandshakeError(seen, "x").failure, failure);
    const alone = await issue(ca, { commonName: "c", usage: "client" });
    const good = await ca.issue(forServers);
    using toServer = securePair({
      client: { material: { ...alone, ca: ca.cert } },
      server: { role: asking, material: { ...good, ca: ca.cert } },
    });
    const refused = toServer.doHandshake().server as SslError;
    assertEquals(refused.code, code);
    assertEquals(serverHandshakeError(refused, "x").failure, failure);
    assertEquals(
      toServer.server.session.refusedCertificate,
      new Uint8Array(new X509Certificate(alone.cert).raw),
    );
  });
}

test("a bad certificate is refused where none is required, and unseen where nobody asks", () => {
  const bad = { material: { ...all.otherClient, ca: all.ca } };
  const optional: SecureRole = {
    kind: "server",
    clientCertificate: "optional",
  };
  assertEquals(
    shake({ client: bad, server: { ...server, role: optional } }).server,
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  );
  assertEquals(shake({ client: bad, server }), COMPLETE);
});

test("both ends say what the other one said of their certificate", () => {
  using pair = securePair({
    client: { material: { ...all.otherClient, ca: all.ca } },
    server: { ...server, role: asking },
  });
  // In TLS 1.3 the client is done before the server has looked.
  assertEquals(pair.doHandshake().client, "complete");
  const error = assertThrows(() => pair.client.receive(pair.server), SslError);
  assertEquals(error.code, "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA");
  assertEquals(clientHandshakeError(error, "x").failure, "refused-by-peer");
});

test("a chain is followed to an authority that is trusted, root or not", async () => {
  const until = new Date(Date.now() + 24 * 3600 * 1000);
  const make = (name: string) =>
    CertificateAuthority.create({ commonName: () => name, notAfter: until });
  const [root, middle] = await Promise.all([make("root"), make("middle")]);
  const vouched = await root.vouchFor(middle);
  const keys = await generateKeyPair();
  const leaf = await middle.issue({
    publicKey: keys.publicKey,
    commonName: "server",
    usage: "server",
    names: [{ type: "dns", value: "localhost" }],
    notAfter: until,
  });
  const key = await exportPrivateKey(keys.privateKey);
  const seen = (cert: string, ca: string) =>
    shake({
      client: { material: { ...NOBODY, ca } },
      server: { material: { cert, key, ca: "" } },
    }).client;
  assertEquals(seen(leaf + vouched, root.certificate), "complete");
  assertEquals(seen(leaf, vouched), "complete", "an anchor need not be a root");
  assertEquals(seen(leaf, middle.certificate), "complete");
  assertEquals(seen(leaf, leaf), "complete", "nor an authority");
  assertEquals(seen(leaf, `${all.otherCa}${vouched}`), "complete");
  for (
    const [shown, code] of [
      [leaf, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"],
      [leaf + middle.certificate, "SELF_SIGNED_CERT_IN_CHAIN"],
    ] as const
  ) assertEquals(seen(shown, root.certificate), code);
});

test("what is shown is the file, not what is trusted", () => {
  // Else each handshake would verify its own certificate to find out.
  const raw = rawSsl();
  const context = clientContext(client, raw.library);
  using pair = raw.pair(context, serverContext(server));
  pair.connect();
  assertEquals(raw.chainLength(pair.client.session), 1);
});

test("a key that is not the certificate's, and damaged files, are refused", () => {
  const contexts: [Partial<TlsMaterial>, string][] = [
    [{ ...all.server, key: all.client.key }, "mismatch"],
    [{ ...all.server, key: "" }, "no key that can be used"],
    [{ ...all.server, cert: all.server.key }, "no certificate is there"],
    // What stands behind a damaged one would not be trusted, silently.
    [{ ...all.server, ca: damaged(all.ca) + all.otherCa }, "TLS failed"],
    [{ ...all.server, ca: all.otherCa + damaged(all.ca) }, "TLS failed"],
    [{ ...all.server, ca: all.ca.slice(0, -40) }, "TLS failed"],
  ];
  for (const [material, words] of contexts) {
    const whole = { ...NOBODY, ...material };
    assertThrows(() => serverContext({ material: whole }), SslError, words);
    assertEquals(LIBSSL!.ERR_peek_last_error(), 0n, "nothing is left behind");
  }
  const commented = `# ours\n${all.otherCa}\nand\n${all.ca}`;
  const material = { ...NOBODY, ca: commented };
  assertEquals(shake({ client: { material }, server }), COMPLETE);
});

function damaged(pem: string): string {
  const lines = pem.split("\n");
  lines[2] = "A".repeat(lines[2]!.length);
  return lines.join("\n");
}

test("an old version is refused, in words that are known", () => {
  const raw = rawSsl();
  const old = clientContext(client, raw.library);
  raw.limitVersion(old, 0x303);
  const strict = serverContext({ ...server, minVersion: "TLSv1.3" });
  using pair = raw.pair(old, strict);
  const outcomes = pair.doHandshake();
  for (
    const { failure } of [
      serverHandshakeError(outcomes.server, "x"),
      clientHandshakeError(outcomes.client, "x"),
    ]
  ) assertEquals(failure, "no-common-version");
});

test("a server speaks no suite of TLS 1.2 that was not allowed", () => {
  const suites = (name: string) => [
    `TLS_ECDHE_ECDSA_WITH_${name}`,
    `TLS_ECDHE_RSA_WITH_${name}`,
  ];
  for (
    const [wanted, allowed, isCommon] of [
      ["AES_128_GCM_SHA256", "AES_128_GCM_SHA256", true],
      ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", false],
      ["CHACHA20_POLY1305_SHA256", "AES_256_GCM_SHA384", false],
      ["CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305_SHA256", true],
    ] as const
  ) {
    const raw = rawSsl();
    const options = { ...known, tls12Suites: suites(wanted) };
    const old = clientContext(options, raw.library);
    raw.limitVersion(old, 0x303);
    const limited = serverContext({ ...server, tls12Suites: suites(allowed) });
    using pair = raw.pair(old, limited);
    const outcomes = pair.doHandshake();
    assertEquals(
      outcomes.client === "complete",
      isCommon,
      `${wanted} ${allowed}`,
    );
    // A client of TLS 1.3 is not limited by the list, as in Go.
    using modern = raw.pair(clientContext(known, raw.library), limited);
    modern.connect();
  }
});

test("nobody resumes: who comes again shows its certificate again", () => {
  for (const number of [0x304, 0x303]) {
    const raw = rawSsl();
    const context = clientContext(known, raw.library);
    raw.limitVersion(context, number);
    const asked = serverContext({ ...server, role: asking });
    using first = raw.pair(context, asked);
    first.connect();
    first.server.session.write(new Uint8Array(1));
    first.client.receive(first.server);
    using second = raw.pair(context, asked);
    raw.resume(first.client.session, second.client.session);
    second.connect();
    assertEquals(raw.isResumed(second.client.session), false);
    assertEquals(subjectOf(second.server.session.peerCertificate), "CN=node1");
  }
});

test("the failure of one session is not the next one's", () => {
  for (let round = 0; round < 3; round++) {
    using good = securePair({ client, server });
    good.server.shake();
    using bad = securePair({ client, server });
    bad.server.shake();
    bad.server.put(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
    bad.server.shake();
    assert(bad.server.outcome instanceof SslError);
    good.connect();
    good.client.session.write(new Uint8Array(3));
    assertEquals(good.server.receive(good.client).length, 3);
    assertEquals(LIBSSL!.ERR_peek_last_error(), 0n);
  }
});

/** A certificate of nobody's. */
async function selfSigned(name: string): Promise<CertificatePair> {
  const authority = await CertificateAuthority.create({
    commonName: () => name,
    notAfter: new Date(Date.now() + 24 * 3600 * 1000),
  });
  const pem = await authority.export();
  const key = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n?/;
  return { cert: authority.certificate, key: key.exec(pem)![0] };
}

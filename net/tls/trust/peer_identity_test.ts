import { assert, assertEquals } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { connect, createServer } from "node:tls";
import type { PeerIdentity } from "../../../proto/peer/peer_identity.ts";
import { certificates } from "../../../tests/support/certificates/certificates.ts";
import {
  general,
  NameCa,
} from "../../../tests/support/certificates/name_certificates.ts";
import {
  bytes,
  commonName,
  derOf as oddDer,
  tlv,
  utf8,
} from "../../../tests/support/certificates/written_certificate.ts";
import { ANONYMOUS } from "../../../proto/peer/peer_identity.ts";
import { KnownCertificates, peerIdentityOf } from "./peer_identity.ts";

const derOf = (pem: string) =>
  new Uint8Array(new X509Certificate(pem).raw) as Uint8Array<ArrayBuffer>;

Deno.test("a certificate says the same however often it is seen", async () => {
  const { client, server } = await certificates();
  const known = new KnownCertificates(8);
  for (const { cert } of [client, server, client, server]) {
    const der = derOf(cert);
    const identity = known.identityOf(der);
    const whole = peerIdentityOf({
      authorized: true,
      getPeerX509Certificate: () => new X509Certificate(cert),
    });
    assertEquals(
      { ...identity, certificate: undefined },
      { ...whole, certificate: undefined },
    );
    assertEquals(new Uint8Array(identity.certificate!.der), der);
    assertEquals(
      identity.certificate!.publicKeySha256,
      whole.certificate!.publicKeySha256,
    );
  }
});

Deno.test("each connection has an identity of its own, read once", async () => {
  const { client, server, otherClient } = await certificates();
  const known = new KnownCertificates(2);
  const first = known.identityOf(derOf(client.cert));
  const again = known.identityOf(derOf(client.cert));
  assert(first !== again);
  assert(first.certificate === again.certificate);
  // Of three the one that was seen longest ago is forgotten.
  known.identityOf(derOf(server.cert));
  known.identityOf(derOf(client.cert));
  known.identityOf(derOf(otherClient.cert));
  const kept = known.identityOf(derOf(client.cert));
  assert(kept.certificate === first.certificate);
  const forgotten = known.identityOf(derOf(server.cert));
  known.identityOf(derOf(client.cert));
  known.identityOf(derOf(otherClient.cert));
  const readAnew = known.identityOf(derOf(server.cert));
  assert(readAnew.certificate !== forgotten.certificate);
});

Deno.test("who showed nothing is nobody", () => {
  assert(new KnownCertificates(1).identityOf(new Uint8Array()) === ANONYMOUS);
});

Deno.test("of several common names none is proven", () => {
  const ca = new NameCa();
  const nameOf = (...subject: Uint8Array[]) =>
    new KnownCertificates(1).identityOf(oddDer(ca.issue({ subject }).cert))
      .commonName;
  assertEquals(nameOf(commonName(utf8("a"))), "a");
  assertEquals(nameOf(commonName(utf8("a"), utf8("b"))), "");
  assertEquals(nameOf(commonName(utf8("a")), commonName(utf8("a"))), "");
  assertEquals(nameOf(commonName(utf8("a")), commonName(utf8("b\0"))), "");
  assertEquals(nameOf(commonName(utf8("a\0"))), "");
  assertEquals(nameOf(), "");
});

Deno.test("a certificate that cannot be read is somebody, and nobody by name", () => {
  const identity = new KnownCertificates(1).identityOf(
    Uint8Array.of(0x30, 0x80),
  );
  assertEquals(
    [identity.kind, identity.commonName, identity.names],
    ["certificate", "", []],
  );
});

Deno.test("a socket of the platform's TLS proves the same, odd or not", async () => {
  const { ca, server } = await certificates();
  const odd = new NameCa();
  for (
    const [pair, expected] of [
      [odd.issue({ names: [[general.uri("u, DNS:victim")]] }), [
        "URI:u, DNS:victim",
      ]],
      [odd.issue({ subject: [commonName(tlv(0x14, bytes("m\xfc")))] }), []],
      [odd.issue({}), []],
    ] as const
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<PeerIdentity>();
    const listener = createServer(
      { ...server, ca: [ca, odd.cert], requestCert: true },
      (socket) => {
        try {
          resolve(peerIdentityOf(socket as never));
        } catch (error) {
          reject(error);
        }
        socket.destroy();
      },
    );
    await new Promise<void>((open) => listener.listen(0, "127.0.0.1", open));
    const { port } = listener.address() as { port: number };
    const client = connect({ host: "127.0.0.1", port, ca, ...pair });
    client.on("error", () => {});
    const identity = await promise;
    assertEquals([identity.kind, identity.names], ["certificate", expected]);
    client.destroy();
    await new Promise((closed) => listener.close(closed));
  }
});

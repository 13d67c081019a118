import { assert, assertEquals } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { certificates } from "../../tests/support/certificates.ts";
import {
  ANONYMOUS,
  KnownCertificates,
  peerIdentityOf,
} from "./peer_identity.ts";

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
      getPeerCertificate: () => new X509Certificate(cert).toLegacyObject(),
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

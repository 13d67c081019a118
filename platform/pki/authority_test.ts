import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { CertificateAuthority } from "./authority.ts";
import {
  certificateFacts,
  isSignedBy,
  pinOf,
  readCertificates,
} from "./certificate.ts";
import { generateKeyPair, importKeyPair, PkiError } from "./key_pair.ts";
import { makeSigningRequest, readSigningRequest } from "./signing_request.ts";

const NEXT_YEAR = new Date(Date.now() + 365 * 24 * 3600_000);

function authority(name = "an authority"): Promise<CertificateAuthority> {
  return CertificateAuthority.create({
    commonName: () => name,
    notAfter: NEXT_YEAR,
  });
}

async function leaf(
  of: CertificateAuthority,
  publicKey: CryptoKey,
): Promise<string> {
  return await of.issue({
    publicKey,
    commonName: "node:a, O=fake",
    organizations: ["tunnel:agents"],
    names: [
      { type: "dns", value: "a" },
      { type: "url", value: "tunnel://node/a" },
    ],
    usage: "client",
    notAfter: NEXT_YEAR,
  });
}

Deno.test("a leaf says what was requested, and names cannot smuggle in others", async () => {
  const ca = await authority();
  const { publicKey } = await generateKeyPair();
  const { x509 } = certificateFacts(await leaf(ca, publicKey));
  assertEquals(x509.subject, "O=tunnel:agents\nCN=node:a, O=fake");
  assertEquals(x509.subjectAltName, "DNS:a, URI:tunnel://node/a");
  assertEquals(x509.ca, false);
  assert(isSignedBy(x509, ca.facts.x509));
});

Deno.test("an authority is the same one after it was stored", async () => {
  const ca = await authority();
  const again = await CertificateAuthority.load(await ca.export());
  assertEquals(pinOf(again.facts), pinOf(ca.facts));
  const { publicKey } = await generateKeyPair();
  assert(
    isSignedBy(
      certificateFacts(await leaf(again, publicKey)).x509,
      ca.facts.x509,
    ),
  );
});

Deno.test("a name alone makes no issuer", async () => {
  const [one, other] = [await authority("same"), await authority("same")];
  const { publicKey } = await generateKeyPair();
  const { x509 } = certificateFacts(await leaf(one, publicKey));
  assert(isSignedBy(x509, one.facts.x509));
  assertEquals(isSignedBy(x509, other.facts.x509), false);
});

Deno.test("an old authority can vouch for a new one", async () => {
  const [old, fresh] = [await authority("old"), await authority("new")];
  const [bridge] = readCertificates(await old.vouchFor(fresh));
  assert(isSignedBy(bridge!.x509, old.facts.x509));
  assertEquals(bridge!.publicKeySha256, fresh.facts.publicKeySha256);
  const { publicKey } = await generateKeyPair();
  const { x509 } = certificateFacts(await leaf(fresh, publicKey));
  assert(isSignedBy(x509, bridge!.x509));
});

Deno.test("an authority that is not whole is refused", async () => {
  const [one, other] = [await authority(), await authority()];
  const [pem, otherPem] = [await one.export(), await other.export()];
  const keyAt = pem.indexOf("-----BEGIN PRIVATE");
  const mixed = pem.slice(0, keyAt) +
    otherPem.slice(otherPem.indexOf("-----BEGIN PRIVATE"));
  for (
    const [text, words] of [
      ["", "no whole PEM block"],
      [pem.slice(0, keyAt), "PRIVATE KEY"],
      [pem.slice(0, -40), "PRIVATE KEY"],
      [pem.slice(keyAt), "BEGIN CERTIFICATE"],
      [pem.replace("MII", "MIA"), "damaged"],
      [mixed, "does not belong"],
    ] as const
  ) await assertRejects(() => CertificateAuthority.load(text), PkiError, words);
});

Deno.test("a request proves its key and nothing else", async () => {
  const keys = await generateKeyPair();
  const der = await makeSigningRequest(keys);
  const { publicKeySha256 } = await readSigningRequest(der);
  const ca = await authority();
  const { publicKeySha256: inLeaf } = certificateFacts(
    await leaf(ca, keys.publicKey),
  );
  assertEquals(publicKeySha256, inLeaf);
});

Deno.test("a request with another's key in it is refused", async () => {
  const [mine, yours] = [await generateKeyPair(), await generateKeyPair()];
  const der = await makeSigningRequest({
    privateKey: mine.privateKey,
    publicKey: yours.publicKey,
  });
  await assertRejects(() => readSigningRequest(der), PkiError, "not signed");
});

Deno.test("bytes that are no request are refused", async () => {
  const der = await makeSigningRequest(await generateKeyPair());
  for (
    const bytes of [
      new Uint8Array(0),
      der.slice(0, -1),
      der.slice(10),
      new Uint8Array(20_000),
    ]
  ) await assertRejects(() => readSigningRequest(bytes), PkiError);
});

Deno.test("keys that cannot be read are refused", async () => {
  await assertRejects(() => importKeyPair("x"), PkiError, "PRIVATE KEY");
  assertThrows(() => readCertificates("x"), PkiError, "CERTIFICATE");
});

import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { assertEquals, assertRejects } from "@std/assert";
import { generateKeyPair, P256, PkiError } from "./key_pair.ts";
import { makeNamedRequest, readNamedRequest } from "./named_request.ts";

const NAMES = {
  commonName: "tunnel-agent-client",
  organizations: ["openyurt:yurttunnel"],
  dnsNames: ["edge1"],
  ipAddresses: ["10.0.0.7", "fd00::7"],
};

const keys = await generateKeyPair();

/** A request with whatever one likes in it. */
async function forged(
  parameters: Partial<x509.Pkcs10CertificateRequestCreateParams>,
): Promise<string> {
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: P256,
    name: [{ O: ["openyurt:yurttunnel"] }, { CN: ["tunnel-agent-client"] }],
    ...parameters,
  });
  return request.toString("pem");
}

function names(...dns: string[]): x509.SubjectAlternativeNameExtension {
  return new x509.SubjectAlternativeNameExtension(
    dns.map((value) => ({ type: "dns" as const, value })),
  );
}

Deno.test("a request says again what was put into it", async () => {
  const { publicKeySha256: _, publicKey: __, ...read } = await readNamedRequest(
    await makeNamedRequest(keys, NAMES),
  );
  assertEquals(read, NAMES);
});

Deno.test("a request without alternative names has none", async () => {
  const bare = { ...NAMES, dnsNames: [], ipAddresses: [] };
  const read = await readNamedRequest(await makeNamedRequest(keys, bare));
  assertEquals([read.dnsNames, read.ipAddresses], [[], []]);
});

Deno.test("requests that two readers could read in two ways are refused", async () => {
  const second = new x509.ExtensionsAttribute([names("edge2")]);
  const both = new x509.Attribute(second.type, [
    ...new x509.ExtensionsAttribute([names("edge1")]).values,
    ...second.values,
  ]);
  const variants: Partial<x509.Pkcs10CertificateRequestCreateParams>[] = [
    { extensions: [names("edge1")], attributes: [second] },
    { attributes: [both] },
    { extensions: [names("edge1"), names("edge2")] },
    { extensions: [new x509.BasicConstraintsExtension(true)] },
    { attributes: [new x509.ChallengePasswordAttribute("secret")] },
    { name: [{ CN: ["tunnel-agent-client"] }, { CN: ["system:admin"] }] },
    { name: [{ CN: ["tunnel-agent-client"] }, { OU: ["system:masters"] }] },
    { name: [{ O: ["system:masters"] }] },
    {
      extensions: [
        new x509.SubjectAlternativeNameExtension([
          { type: "url", value: "spiffe://cluster/admin" },
        ]),
      ],
    },
  ];
  for (const parameters of variants) {
    const request = await forged(parameters);
    await assertRejects(
      () => readNamedRequest(request),
      PkiError,
      "Cannot accept the signing request",
    );
  }
});

Deno.test("a request whose key is not its maker's is refused", async () => {
  const other = await generateKeyPair();
  const pem = await makeNamedRequest(
    { publicKey: other.publicKey, privateKey: keys.privateKey },
    NAMES,
  );
  await assertRejects(() => readNamedRequest(pem), PkiError, "own key");
});

Deno.test("texts that are no request are refused", async () => {
  const pem = await makeNamedRequest(keys, NAMES);
  const cut = pem.replace(/\n.{20}/, "\n");
  for (const text of ["", "hello", `${pem}${pem}`, `x${pem}`, cut]) {
    await assertRejects(() => readNamedRequest(text), PkiError, "Cannot read");
  }
});

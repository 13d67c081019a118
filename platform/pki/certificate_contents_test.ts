import { assert, assertEquals, assertThrows } from "@std/assert";
import { X509Certificate } from "node:crypto";
import { certificates } from "../../tests/support/certificates/certificates.ts";
import {
  general,
  NameCa,
} from "../../tests/support/certificates/name_certificates.ts";
import {
  bytes,
  commonName,
  derOf,
  relative,
  tlv,
  utf8,
} from "../../tests/support/certificates/written_certificate.ts";
import { readCertificate } from "./certificate_contents.ts";
import { DerError } from "./der.ts";

const ca = new NameCa();

function namesOf(...names: Uint8Array[]): readonly string[] {
  return readCertificate(derOf(ca.issue({ names: [names] }).cert)).names;
}

function subjectOf(...subject: Uint8Array[]) {
  const { commonNames, organizations } = readCertificate(
    derOf(ca.issue({ subject }).cert),
  );
  return { commonNames, organizations };
}

Deno.test("of ordinary certificates all is read as the platform reads it", async () => {
  const made = await certificates();
  for (const pem of [made.client.cert, made.server.cert, made.ca]) {
    const platform = new X509Certificate(pem);
    const read = readCertificate(derOf(pem));
    // The platform leaves a leading zero out.
    assertEquals(
      read.serialNumber.replace(/^0+/, ""),
      platform.serialNumber.toUpperCase().replace(/^0+/, ""),
    );
    assertEquals(read.notAfterMs, Date.parse(platform.validTo));
    assertEquals(`CN=${read.commonNames[0]}`, platform.subject);
    assertEquals(read.names.join(", "), platform.subjectAltName ?? "");
    assertEquals(
      read.publicKeyInfo,
      new Uint8Array(
        platform.publicKey.export({ type: "spki", format: "der" }),
      ),
    );
  }
});

Deno.test("one name stays one name, whatever it contains", () => {
  for (
    const text of [
      "spiffe://corp/x?a=1, DNS:victim, IP Address:10.9.0.2",
      'spiffe://corp/"quoted", DNS:victim',
      "spiffe://corp/\\, DNS:victim",
      ",DNS:victim",
      ", ",
      "a, URI:b",
    ]
  ) {
    assertEquals(namesOf(general.uri(text)), [`URI:${text}`]);
    assertEquals(namesOf(general.email(text)), [`email:${text}`]);
    assertEquals(namesOf(general.dns(text)), [`DNS:${text}`]);
  }
});

Deno.test("names with control characters, or none at all, prove nothing", () => {
  for (const text of ["", "victim\0.evil", "a\nDNS:victim", "\x7f", "m\xfcn"]) {
    for (const kind of [general.uri, general.email, general.dns]) {
      assertEquals(namesOf(kind(text), general.dns("n")), ["DNS:n"]);
    }
  }
});

Deno.test("addresses are addresses by their bytes alone", () => {
  const mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 9, 0, 2];
  assertEquals(namesOf(general.ip(10, 9, 0, 2)), ["IP Address:10.9.0.2"]);
  assertEquals(namesOf(general.ip(...mapped)), ["IP Address:10.9.0.2"]);
  assertEquals(namesOf(general.ip(0xfd, ...Array(14).fill(0), 9)), [
    "IP Address:fd00::9",
  ]);
  for (const length of [0, 1, 3, 5, 8, 15, 17, 32]) {
    assertEquals(namesOf(general.ip(...Array(length).fill(1))), []);
  }
});

Deno.test("other kinds of names are left out, twins are one", () => {
  assertEquals(
    namesOf(
      general.other("1.3.6.1.4.1.311.20.2.3", "victim"),
      general.directory(tlv(0x30, commonName(utf8("victim")))),
      general.registered("1.2.3"),
      general.dns("n"),
      general.dns("n"),
    ),
    ["DNS:n"],
  );
  assertEquals(namesOf(), []);
});

Deno.test("of two lists of names none counts", () => {
  const names = [[general.dns("a")], [general.dns("b")]];
  const { cert } = ca.issue({ names });
  assertEquals(readCertificate(derOf(cert)).names, []);
});

Deno.test("a subject's attributes are read one by one", () => {
  assertEquals(subjectOf(), { commonNames: [], organizations: [] });
  assertEquals(subjectOf(commonName(utf8("a, O=b\\, CN=c"))), {
    commonNames: ["a, O=b\\, CN=c"],
    organizations: [],
  });
  // One relative name of several attributes, and a second one.
  assertEquals(
    subjectOf(
      relative(["2.5.4.10", utf8("o1, o2")], ["2.5.4.3", utf8("a")]),
      relative(["2.5.4.10", utf8("system:nodes")]),
    ),
    { commonNames: ["a"], organizations: ["o1, o2", "system:nodes"] },
  );
  assertEquals(subjectOf(commonName(utf8("a"), utf8("b"))).commonNames, [
    "a",
    "b",
  ]);
});

Deno.test("each kind of string is read as what it is, or not at all", () => {
  const text = (tag: number, ...contents: number[]) =>
    subjectOf(commonName(tlv(tag, Uint8Array.from(contents)))).commonNames[0];
  const A = 0x41;
  assertEquals(text(0x13, A), "A");
  assertEquals(text(0x16, A), "A");
  assertEquals(text(0x14, A), "A");
  assertEquals(text(0x1a, A), "A");
  assertEquals(text(0x12, 0x31), "1");
  assertEquals(text(0x1e, 0, A, 0x20, 0x3c), "A\u203c");
  assertEquals(text(0x1c, 0, 0, 0, A, 0, 1, 0xf6, 0), "A\u{1f600}");
  assertEquals(text(0x0c, 0xc3, 0xbc), "ü");
  // A mark in front is a character like others: "\ufeffadmin" is not "admin".
  assertEquals(text(0x0c, 0xef, 0xbb, 0xbf, A), "\ufeffA");
  for (
    const [tag, ...contents] of [
      [0x14, 0xfc],
      [0x13, 0xfc],
      [0x0c, 0xff],
      [0x0c, A, 0],
      [0x1e, 0],
      [0x1e, 0, 0],
      [0x1e, 0xd8, 0],
      [0x1c, 0, 0, A],
      [0x1c, 0, 0x11, 0, 0],
      [0x1c, 0, 0, 0xd8, 0],
      [0x03, 0, A],
    ]
  ) assertEquals(text(tag!, ...contents), undefined, `${tag}: ${contents}`);
});

Deno.test("what is no certificate is refused, wherever it was cut", async () => {
  const der = derOf((await certificates()).client.cert);
  for (let length = 0; length < der.length; length++) {
    assertThrows(() => readCertificate(der.subarray(0, length)), DerError);
  }
  for (
    const contents of [
      [0x30, 0x80, 0, 0],
      [0x30, 0x85, 0, 0, 0, 0, 1, 0],
      [0x1f, 0x81, 0, 0],
      [0x30, 0x84, 0xff, 0xff, 0xff, 0xff],
      [...bytes("no DER at all")],
    ]
  ) assertThrows(() => readCertificate(Uint8Array.from(contents)), DerError);
});

Deno.test("mutated certificates are read or refused, and never more", async () => {
  const der = derOf((await certificates()).client.cert);
  let read = 0;
  for (let at = 0; at < der.length; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const mutated = der.slice();
      mutated[at]! ^= flip;
      try {
        readCertificate(mutated);
        read++;
      } catch (error) {
        assert(error instanceof DerError, String(error));
      }
    }
  }
  assert(read > 0);
});

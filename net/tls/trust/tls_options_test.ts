import { assertEquals, assertThrows } from "@std/assert";
import {
  allowedSuites,
  opensslCipherList,
  parseMinVersion,
  TLS12_SUITES,
  TLS13_SUITES,
  TlsOptionError,
} from "./tls_options.ts";

Deno.test("versions are known by Go's names", () => {
  assertEquals(parseMinVersion(""), "TLSv1.2");
  assertEquals(parseMinVersion("VersionTLS12"), "TLSv1.2");
  assertEquals(parseMinVersion("VersionTLS13"), "TLSv1.3");
});

Deno.test("versions that cannot be had are refused with those that can", () => {
  for (const name of ["VersionTLS10", "VersionTLS11", "TLS1.2", "13"]) {
    assertThrows(
      () => parseMinVersion(name),
      TlsOptionError,
      "usable are VersionTLS12, VersionTLS13",
    );
  }
});

const can = () => true;
const cannot = () => false;
const [ecdsa256] = TLS12_SUITES;

Deno.test("no list and the whole list limit nothing", () => {
  for (
    const names of [[], [...TLS12_SUITES, ...TLS13_SUITES], TLS12_SUITES]
  ) assertEquals(allowedSuites(names, "TLSv1.2", cannot), undefined);
});

Deno.test("a list allows what it names, in our own order of preference", () => {
  const some = [TLS12_SUITES[4]!, TLS12_SUITES[1]!];
  assertEquals(allowedSuites(some, "TLSv1.2", can), [...some].reverse());
  // Means nothing there, as in Go.
  assertEquals(allowedSuites(some, "TLSv1.3", cannot), undefined);
  assertThrows(
    () => allowedSuites(some, "TLSv1.2", cannot),
    TlsOptionError,
    ecdsa256!,
  );
});

Deno.test("lists of hardening guides are followed as far as they are safe", () => {
  const guide = "TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA," +
    "TLS_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256," +
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
  assertEquals(
    allowedSuites(guide.split(","), "TLSv1.2", can),
    ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
  );
});

Deno.test("a list that leaves nothing, or names what there is not, is refused", () => {
  assertThrows(
    () => allowedSuites(["TLS_RSA_WITH_AES_128_CBC_SHA"], "TLSv1.2", can),
    TlsOptionError,
    "forward secrecy",
  );
  assertThrows(
    () => allowedSuites([ecdsa256!, "TLS_FAST"], "TLSv1.2", can),
    TlsOptionError,
    "TLS_FAST",
  );
});

Deno.test("OpenSSL calls suites by other names", () => {
  assertEquals(
    opensslCipherList(TLS12_SUITES),
    "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:" +
      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384:" +
      "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305",
  );
});

import { assertEquals, assertThrows } from "@std/assert";
import {
  checkCipherSuites,
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

Deno.test("no list and the whole list are fine", () => {
  checkCipherSuites([], "TLSv1.2");
  checkCipherSuites([...TLS12_SUITES, ...TLS13_SUITES], "TLSv1.2");
  checkCipherSuites(TLS12_SUITES, "TLSv1.2");
});

Deno.test("a list that cannot be honoured is refused", () => {
  const part = TLS12_SUITES.slice(1);
  assertThrows(
    () => checkCipherSuites(part, "TLSv1.2"),
    TlsOptionError,
    TLS12_SUITES[0]!,
  );
  checkCipherSuites(part, "TLSv1.3"); // Means nothing there, as in Go.
  assertThrows(
    () => checkCipherSuites(["TLS_RSA_WITH_AES_128_CBC_SHA"], "TLSv1.2"),
    TlsOptionError,
    "usable are TLS_ECDHE",
  );
});

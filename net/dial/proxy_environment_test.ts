import { assertEquals, assertThrows } from "@std/assert";
import {
  ProxyAddressError,
  proxyEnvironment,
  proxyFor,
} from "./proxy_environment.ts";

Deno.test("the proxy's address may have a scheme, a user and a port", () => {
  assertEquals(proxyFor("node", 443, { httpsProxy: "proxy:3128" }), {
    scheme: "http",
    host: "proxy",
    port: 3128,
    user: "",
    password: "",
  });
  assertEquals(
    proxyFor("node", 443, { httpsProxy: "http://u%40x:p%3Aw@[::2]/" }),
    { scheme: "http", host: "::2", port: 80, user: "u@x", password: "p:w" },
  );
});

Deno.test("a proxy that cannot be used is refused without its password", () => {
  for (const httpsProxy of ["socks5://u:secret@proxy", "https://u:secret@p"]) {
    const error = assertThrows(
      () => proxyFor("node", 443, { httpsProxy }),
      ProxyAddressError,
    );
    assertEquals(error.message.includes("secret"), false);
  }
});

const DIRECT: readonly [noProxy: string, host: string, direct: boolean][] = [
  ["", "node", false],
  ["*", "node", true],
  ["example.com", "example.com", true],
  ["example.com", "a.example.com", true],
  ["example.com", "notexample.com", false],
  [".example.com", "example.com", false],
  [".example.com", "A.Example.com.", true],
  ["*.example.com", "a.example.com", true],
  ["other, example.com", "example.com", true],
  ["10.0.0.0/8", "10.1.2.3", true],
  ["10.0.0.0/8", "11.1.2.3", false],
  ["fd00::/8", "fd12::1", true],
  ["10.0.0.1", "10.0.0.1", true],
  ["10.0.0.1:443", "10.0.0.1", true],
  ["10.0.0.1:444", "10.0.0.1", false],
  ["0:0::5", "::5", true],
  ["", "localhost", true],
  ["", "127.0.0.9", true],
  ["", "::1", true],
];

for (const [noProxy, host, direct] of DIRECT) {
  Deno.test(`NO_PROXY "${noProxy}" and ${host}`, () => {
    const proxy = proxyFor(host, 443, { httpsProxy: "proxy:1", noProxy });
    assertEquals(proxy === undefined, direct);
  });
}

Deno.test("lower case wins, and empty means none", () => {
  const names = new Map([
    ["https_proxy", "a"],
    ["HTTPS_PROXY", "b"],
    ["no_proxy", ""],
    ["NO_PROXY", "c"],
  ]);
  assertEquals(proxyEnvironment((name) => names.get(name)), {
    httpsProxy: "a",
    noProxy: "c",
  });
});

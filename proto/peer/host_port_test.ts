import { assertEquals } from "@std/assert";
import {
  bracketed,
  hostOf,
  hostPort,
  portOf,
  withoutBrackets,
} from "./host_port.ts";

Deno.test("a host is found in what was made of it and a port", () => {
  for (const host of ["127.0.0.1", "::1", "fe80::1%eth0", "localhost", ""]) {
    assertEquals(hostOf(hostPort(host, 80)), host);
    assertEquals(portOf(hostPort(host, 80)), 80);
    assertEquals(withoutBrackets(bracketed(host)), host);
  }
  assertEquals(hostOf("unix"), "unix");
  assertEquals(portOf("unix"), NaN);
});

Deno.test("IPv4 is written as IPv4, whatever the socket's family", () => {
  assertEquals(hostPort("::ffff:10.0.0.7", 80), "10.0.0.7:80");
  assertEquals(hostPort("::ffff:a00:7", 80), "10.0.0.7:80");
  assertEquals(hostPort("::ffff:1:2:3", 80), "[::ffff:1:2:3]:80");
});

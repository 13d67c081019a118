import { assertEquals, assertThrows } from "@std/assert";
import { EtcdConfigError } from "./errors.ts";
import { memberName, parseEtcdMember } from "./members.ts";

Deno.test("an address is read with and without scheme and port", () => {
  const read = (text: string, isTls = false) =>
    memberName(parseEtcdMember(text, isTls));
  assertEquals(read("http://10.0.0.1:4001"), "http://10.0.0.1:4001");
  assertEquals(read("https://etcd.example/"), "https://etcd.example:2379");
  assertEquals(read("etcd.example"), "http://etcd.example:2379");
  assertEquals(read("etcd.example:2380", true), "https://etcd.example:2380");
  assertEquals(read("[::1]:2379"), "http://[::1]:2379");
  // Ports that URLs take for unsaid.
  assertEquals(read("http://10.0.0.1:80"), "http://10.0.0.1:80");
  assertEquals(read("https://10.0.0.1:443/"), "https://10.0.0.1:443");
});

Deno.test("what is no address of a member is refused", () => {
  for (
    const text of [
      "",
      "unix:///run/etcd.sock",
      "http://",
      "http://u:p@etcd:2379",
      "http://etcd:2379/v3",
      "http://etcd:99999",
    ]
  ) {
    assertThrows(() => parseEtcdMember(text, false), EtcdConfigError, "wanted");
  }
});

import { assertEquals, assertRejects } from "@std/assert";
import { ListenError } from "../../net/bind/listen_error.ts";
import { namingFlags } from "./addresses.ts";

const FLAGS = [
  ["--health-port", { hostname: "127.0.0.1", port: 8092 }],
  ["--admin-port", { hostname: "::1", port: 8095 }],
  ["--uds-name", "/run/front.sock"],
] as const;

/** What is said when `address` cannot be opened. */
async function said(address: string): Promise<string> {
  const message =
    `Cannot listen on ${address}: something listens there already`;
  const error = await assertRejects(
    () =>
      namingFlags(FLAGS, () => {
        throw new ListenError("in-use", address, message);
      }),
    ListenError,
  );
  assertEquals(error.problem, "in-use");
  return error.message.slice(message.length);
}

Deno.test("a listener that cannot be opened names its flag", async () => {
  assertEquals(await said("127.0.0.1:8092"), "; change --health-port");
  assertEquals(await said("[::1]:8095"), "; change --admin-port");
  assertEquals(await said("/run/front.sock"), "; change --uds-name");
  assertEquals(await said("127.0.0.1:1"), "");
});

Deno.test("what is no listener's error passes as it is", async () => {
  const bug = new TypeError("a bug");
  const error = await assertRejects(() =>
    namingFlags(FLAGS, () => Promise.reject(bug))
  );
  assertEquals(error, bug);
  assertEquals(await namingFlags(FLAGS, () => 7), 7);
});

import { assertEquals } from "@std/assert";
import { virtualRange } from "../addresses/local_address.ts";
import { environmentText, hostsText, type LocalName } from "./local_names.ts";

const at = (
  service: string,
  port: string,
  hostname: string,
  number: number,
): LocalName => ({ service, port, address: { hostname, port: number } });

Deno.test("the environment is as Kubernetes sets it", () => {
  const text = environmentText([
    at("shop/db", "", "127.0.0.1", 25_120),
    at("default/my-web.v2", "http", "127.0.0.1", 20_019),
    at("default/my-web.v2", "http-alt", "127.0.0.1", 26_414),
  ], (line) => assertEquals(line, ""));
  assertEquals(
    text,
    "MY_WEB_V2_SERVICE_HOST=127.0.0.1\n" +
      "MY_WEB_V2_SERVICE_PORT=20019\n" +
      "MY_WEB_V2_SERVICE_PORT_HTTP=20019\n" +
      "MY_WEB_V2_SERVICE_PORT_HTTP_ALT=26414\n" +
      "SHOP_DB_SERVICE_HOST=127.0.0.1\n" +
      "SHOP_DB_SERVICE_PORT=25120\n",
  );
});

Deno.test("of two that come to one name the default namespace's has it", () => {
  const leftOut: string[] = [];
  const text = environmentText([
    at("shop/db", "", "127.0.0.1", 1),
    at("default/shop-db", "", "127.0.0.1", 2),
    at("default/1st", "", "127.0.0.1", 3),
    at("default/1st", "more", "127.0.0.1", 4),
  ], (line) => leftOut.push(line));
  assertEquals(leftOut, [
    "default/1st has no variables: no name may begin with a digit",
    "shop/db has no variables: SHOP_DB_SERVICE_HOST is of default/shop-db",
  ]);
  assertEquals(
    text,
    "SHOP_DB_SERVICE_HOST=127.0.0.1\nSHOP_DB_SERVICE_PORT=2\n",
  );
});

Deno.test("hosts are a line for each service", () => {
  const text = hostsText([
    at("shop/db", "", "127.100.0.9", 5_432),
    at("default/web", "http", "127.100.0.7", 80),
    at("default/web", "https", "127.100.0.7", 443),
  ]);
  assertEquals(
    text,
    "127.100.0.7 web.default.svc.tunnel web.default web\n" +
      "127.100.0.9 db.shop.svc.tunnel db.shop\n",
  );
});

Deno.test("virtual addresses are loopback or none", () => {
  assertEquals(virtualRange("127.100.0.0/16"), {
    first: 0x7f64_0000,
    count: 65_536,
  });
  assertEquals(virtualRange("127.100.3.4/16"), virtualRange("127.100.0.0/16"));
  for (
    const text of ["10.0.0.0/8", "126.0.0.0/7", "::1/128", "127.0.0.1", ""]
  ) {
    assertEquals(virtualRange(text), undefined, text);
  }
});

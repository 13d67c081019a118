import { assertEquals, assertThrows } from "@std/assert";
import { ANNOUNCED_SERVICES_MAX } from "../../proto/link/control_messages.ts";
import { UsageError } from "../flags/usage_error.ts";
import { AGENT_FLAGS } from "./flags.ts";
import { agentOptions } from "./options.ts";
import { readFlags } from "../flags/read_flags.ts";

/** What an agent with these flags announces, as `namespace/name:port …`. */
function announced(argv: readonly string[], environment = ""): string[] {
  const reading = readFlags("agent", AGENT_FLAGS, {
    argv: ["--ca-cert=ca", ...argv],
    environment: (name) =>
      name === "TUNNEL_ANNOUNCE" ? environment || undefined : undefined,
    readFile: () => "",
  });
  const { services = [] } = agentOptions(reading, () => "id", "/no/state");
  return services.map((
    { namespace, name, port, protocol, appProtocol, host, targetPort },
  ) =>
    `${namespace}/${name}:${port}/${protocol} ${host} ${targetPort}` +
    (appProtocol && ` ${appProtocol}`)
  );
}

Deno.test("a service is announced by name, and its target by host and port", () => {
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [flag: string, means: string])[] = [
    ["web=127.0.0.1:8080",                "default/web:8080/tcp 127.0.0.1 8080"],
    ["web.shop=127.0.0.1:8080",           "shop/web:8080/tcp 127.0.0.1 8080"],
    ["web.shop:80=[::1]:8080",            "shop/web:80/tcp ::1 8080"],
    ["dns:53=10.0.0.7:5353/udp",          "default/dns:53/udp 10.0.0.7 5353"],
    ["api=127.0.0.1:9,app=grpc",          "default/api:9/tcp 127.0.0.1 9 grpc"],
    ["api:80=localhost:9/tcp, app=http",  "default/api:80/tcp localhost 9 http"],
  ];
  for (const [flag, means] of cases) {
    assertEquals(announced([`--announce=${flag}`]), [means]);
  }
  assertEquals(announced([]), []);
});

Deno.test("one text may hold several services, and one may be called app", () => {
  const text = "web=127.0.0.1:1,app=http,app=127.0.0.1:2, db=127.0.0.1:3";
  const means = [
    "default/web:1/tcp 127.0.0.1 1 http",
    "default/app:2/tcp 127.0.0.1 2",
    "default/db:3/tcp 127.0.0.1 3",
  ];
  assertEquals(announced([], text), means);
  assertEquals(announced(["--announce", text]), means);
  assertEquals(
    announced(["--announce=a=127.0.0.1:1", "--announce=b=127.0.0.1:2"]).length,
    2,
  );
});

Deno.test("what cannot be announced is a usage error that says why", () => {
  const refused = (...flags: string[]) =>
    assertThrows(
      () => announced(flags.map((flag) => `--announce=${flag}`)),
      UsageError,
    ).message;
  assertEquals(
    refused("web"),
    'Cannot use --announce: saw "web", wanted ' +
      "NAME[.NAMESPACE][:PORT]=HOST:PORT[/udp][,app=PROTOCOL], such as " +
      "web=127.0.0.1:8080 or dns.infra:53=127.0.0.1:5353/udp",
  );
  // deno-fmt-ignore: the columns are the point.
  const cases: readonly (readonly [flag: string, says: RegExp])[] = [
    ["web=127.0.0.1",              /wanted NAME/],
    ["web=127.0.0.1:80/sctp",      /wanted NAME/],
    ["web=::1:80",                 /wanted NAME/],
    ["a.b.c=127.0.0.1:80",         /wanted NAME/],
    ["w*b=127.0.0.1:80",           /"w\*b" is no name of a service/],
    ["web.n*=127.0.0.1:80",        /"n\*" is no namespace/],
    ["web:70000=127.0.0.1:80",     /is 70000, 1 to 65535 is wanted/],
    ["web=127.0.0.1:0",            /is 0, 1 to 65535 is wanted/],
    ["web=127.1:80",               /"127\.1" is no address/],
  ];
  for (const [flag, says] of cases) {
    const message = refused(flag);
    assertEquals(says.test(message), true, message);
  }
  assertEquals(
    refused("web=127.0.0.1:80", "web.default=127.0.0.1:80"),
    "Cannot use --announce: default/web:80 is there twice with 127.0.0.1 and " +
      "port 80; remove one",
  );
  const many = Array.from(
    { length: ANNOUNCED_SERVICES_MAX + 1 },
    (_, index) => `s${index}=127.0.0.1:80`,
  );
  assertEquals(
    refused(...many),
    "Cannot use --announce: saw 65 services, 64 are allowed",
  );
});

import { assertEquals, assertThrows } from "@std/assert";
import type { CommandContext } from "../program/command.ts";
import { recordedLog } from "../../tests/support/watch/recorded_log.ts";
import { UsageError } from "../flags/usage_error.ts";
import { PROXY_FLAGS } from "./flags.ts";
import { exposureNotice, proxyOptions } from "./options.ts";
import { readFlags } from "../flags/read_flags.ts";

const FILES: Readonly<Record<string, string>> = {
  "etcd.json": '{"cluster": {"machines": ["http://10.0.0.9:2379"]}}',
};

/** What a command line means. */
function optionsOf(...argv: readonly string[]) {
  const context: CommandContext = {
    argv,
    environment: (name) => name === "HOME" ? "/nowhere" : undefined,
    readFile: (path) => {
      const text = FILES[path];
      if (text === undefined) throw new Error("no such file");
      return text;
    },
    print: () => {},
    printError: () => {},
  };
  const reading = readFlags("proxy", PROXY_FLAGS, context);
  return proxyOptions(reading, context, recordedLog().log);
}

const sourcesOf = (...argv: readonly string[]) =>
  optionsOf(...argv).sources.map(({ name }) => name);

Deno.test("--config names services, and not flags", () => {
  assertEquals(sourcesOf("--config=s.yaml"), ["file"]);
});

Deno.test("several sources may be given, in any order, and rank as documented", () => {
  assertEquals(
    sourcesOf(
      "--etcd-servers=http://10.0.0.1:2379",
      "--etcd=http://10.0.0.2:2379",
      "--master=http://10.0.0.3:8080",
      "--services-url=http://10.0.0.4/services.yaml",
      "--config=s.yaml",
    ),
    ["file", "http", "kubernetes", "etcd", "etcd-registry"],
  );
});

Deno.test("kube-proxy 0.4's command lines work, with its underscores", () => {
  const { sources, addresses } = optionsOf(
    "--bind_address=0.0.0.0",
    "--etcd_servers=http://10.0.0.1:4001",
    "--local-addresses=original",
  );
  assertEquals(sources.map(({ name }) => name), ["etcd-registry"]);
  assertEquals(addresses, { kind: "original", host: "0.0.0.0" });
  assertEquals(sourcesOf("--etcd_config=etcd.json"), ["etcd-registry"]);
  assertEquals(
    sourcesOf("--etcd_config=etcd.json", "--etcd=http://10.0.0.2:2379"),
    ["etcd", "etcd-registry"],
  );
  assertEquals(sourcesOf("--master=10.0.0.3:8080"), ["kubernetes"]);
  assertEquals(
    sourcesOf(
      ...["-master=https://10.0.0.3:6443", "-api_version=v1beta2"],
      ...["-insecure_skip_tls_verify=false", "-log_flush_frequency=5s"],
      ...["-logtostderr", "-bind_address", "0.0.0.0", "-v=4"],
    ),
    ["kubernetes"],
  );
});

Deno.test("defaults are loopback, a stable port, and kube-proxy's tries", () => {
  const options = optionsOf("--config=s.yaml");
  assertEquals(options.addresses, {
    kind: "ports",
    host: "127.0.0.1",
    first: 20_000,
    last: 29_999,
  });
  assertEquals(options.dialTimeoutsMs, [250, 500, 1_000, 2_000]);
  assertEquals(options.udpIdleMs, 60_000);
  assertEquals(options.balance, "round-robin");
  assertEquals(options.admin, { hostname: "127.0.0.1", port: 8096 });
  assertEquals([options.zone, options.route], [undefined, undefined]);
});

Deno.test("what is said otherwise counts", () => {
  const options = optionsOf(
    "--config=s.yaml",
    "--port-range=7000-7009",
    "--dial-timeouts=100ms,2s",
    "--udp-timeout=5s",
    "--balance=least-connections",
    "--zone=a",
    "--server=unix:/run/front.sock",
  );
  assertEquals(options.addresses, {
    kind: "ports",
    host: "127.0.0.1",
    first: 7_000,
    last: 7_009,
  });
  assertEquals(options.dialTimeoutsMs, [100, 2_000]);
  assertEquals(options.udpIdleMs, 5_000);
  assertEquals([options.balance, options.zone], ["least-connections", "a"]);
  assertEquals(options.route, {
    kind: "tunnel",
    protocol: "grpc",
    address: { kind: "unix", path: "/run/front.sock" },
  });
});

Deno.test("what cannot be meant is refused, with a way out", () => {
  const config = "--config=s.yaml";
  const url = (where: string) => `--services-url=${where}`;
  // deno-fmt-ignore: the columns are the point.
  const wrong: readonly (readonly [message: string, ...argv: string[]])[] = [
    ["no flag says where services come from"],
    ["--kubernetes together with --master",     "--kubernetes", "--master=x"],
    ["wanted http://",                          url("ftp://x/y")],
    ["without --services-url",                  config, "--services-token-file=t"],
    ["would read the token; write https://a:1", url("http://a:1/s"), "--services-token-file=t"],
    ["keep one",                                url("https://u:p@a:1/s"), "--services-token-file=t"],
    ["http: it has no TLS",                     url("http://a:1/s"), "--services-ca-cert=c.pem"],
    ["there is no such file",                   url("https://a:1/s"), "--services-ca-cert=/nowhere/c.pem"],
    ["from 500ms",                              url("https://a:1/s"), "--services-interval=1ms"],
    ["wanted http://HOST:PORT",                 "--master=http://u@x/"],
    ["without --master",                        config, "-client_certificate=c.pem"],
    ["--client-key alone",                      "--master=https://a:1", "-client_key=k.pem"],
    ["Cannot read",                             "--master=a:1", "-certificate_authority=/nowhere/ca.pem"],
    ["http has no TLS",                         "-master=http://a:1", "-certificate_authority=c.pem"],
    ["one of v1beta1",                          "--master=x", "-api_version=v2"],
    ["give --certificate-authority in its",     "--master=https://a:1", "-insecure_skip_tls_verify"],
    ["wanted an IP address",                    config, "--bind-address=localhost"],
    ["wanted a range of ports",                 config, "--port-range=2-1"],
    ["wanted a range of ports",                 config, "--port-range=0-9"],
    ["durations",                               config, "--dial-timeouts=250ms,"],
    ["inside 127.0.0.0/8",          config, "--local-addresses=virtual-ips", "--virtual-range=10.0.0.0/8"],
    ["--port-range with --local-addresses=original", config, "--local-addresses=original", "--port-range=1-2"],
    ["--etcd-config together with --etcd-servers", "--etcd-config=etcd.json", "--etcd-servers=http://x:1"],
    ["--ca-cert",                               config, "--server=tunnel.example:8090"],
  ];
  for (const [message, ...argv] of wrong) {
    assertThrows(() => optionsOf(...argv), UsageError, message);
  }
});

Deno.test("services that others reach are worth a warning", () => {
  const open = { kind: "original", host: "0.0.0.0" } as const;
  assertEquals(exposureNotice({ ...open, host: "127.0.0.1" }), undefined);
  assertEquals(
    exposureNotice(open)?.includes("every client that reaches this machine"),
    true,
  );
});

Deno.test("--dns-listen wants an address and a port", () => {
  assertEquals(optionsOf("--config=s.yaml").dns, undefined);
  assertEquals(optionsOf("--config=s.yaml", "--dns-listen=[::1]:53").dns, {
    hostname: "::1",
    port: 53,
  });
  for (const text of ["127.0.0.1", "localhost:53", "127.0.0.1:0"]) {
    assertThrows(
      () => optionsOf("--config=s.yaml", `--dns-listen=${text}`),
      UsageError,
      "--dns-listen",
    );
  }
});

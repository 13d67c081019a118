/**
 * `tunnel egress-config`: the EgressSelectorConfiguration with which
 * kube-apiserver takes the route through a server.
 *
 * @module
 */

import { withoutBrackets } from "../proto/peer/host_port.ts";
import { resolve } from "node:path";
import {
  formatEgressConfig,
  NETWORK_CONTEXTS,
} from "../client/egress_config.ts";
import type { FrontendProtocol, TunnelRoute } from "../client/tunnel_route.ts";
import type { FrontendListen, ServerOptions } from "../server/options.ts";
import { defineCommand, refuseOperands } from "./program/command.ts";
import { flag, inGroup } from "./flags/flag.ts";
import type { FlagReading } from "./flags/read_flags.ts";
import { SERVER_FLAGS } from "./server/flags.ts";
import { serverOptions } from "./server/options.ts";
import { defaultStateDirectory } from "./flags/state_directory.ts";
import { refuseFlags, unusable, UsageError } from "./flags/usage_error.ts";

const APISERVER_FLAGS = inGroup("kube-apiserver's part", {
  "contexts": flag.choices(NETWORK_CONTEXTS, ["cluster"], {
    help: "What goes through the tunnel: cluster is kubelets, proxies, " +
      "webhooks and aggregated APIs by Service.",
  }),
  "protocol": flag.choice(["", "grpc", "http-connect"], "", {
    help: "What to speak to the server.",
    defaultText: "grpc over a unix socket, else http-connect",
  }),
  "frontend": flag.word("unix:/PATH", {
    help: "Go through `tunnel forward --frontend` of this socket on " +
      "kube-apiserver's machine, in place of one server.",
  }),
  "server-host": flag.word("HOST", {
    help: "Where kube-apiserver finds a server that listens on a port.",
    defaultText: "--server-bind-address, or 127.0.0.1",
  }),
  "ca-bundle": flag.file("CA of the server's certificate; for a port."),
  "client-cert": flag.file({
    help: "Certificate that kube-apiserver shows; for a port.",
  }),
  "client-key": flag.file("Its private key."),
  "tls-server-name": flag.word("NAME", {
    help: "Name that the server's certificate must bear.",
    defaultText: "the host",
  }),
});

const FLAGS = {
  ...APISERVER_FLAGS,
  ...SERVER_FLAGS,
} as const;

type Flags = FlagReading<typeof FLAGS>["values"];

/** See the module description. */
export const EGRESS_CONFIG_COMMAND = defineCommand({
  name: "egress-config",
  operands: "[flags of tunnel server] [flags]",
  about: [
    "Takes the command line or the --config file of `tunnel server` and prints " +
    "what kube-apiserver wants as --egress-selector-config-file to reach that " +
    "server. Nothing is started and no file is read but --config.",
  ],
  examples: [
    "tunnel egress-config > egress.yaml",
    "tunnel egress-config --uds-name /run/tunnel.sock --server-port 0",
    "tunnel egress-config --frontend unix:/run/konnectivity.sock",
    "tunnel egress-config --config server.yaml --ca-bundle ca.crt \\",
    "  --client-cert apiserver.crt --client-key apiserver.key",
  ],
  rights: "look",
  flags: FLAGS,
  run(reading, { print, environment }) {
    refuseOperands(reading.operands);
    const route = routeToFrontend(reading) ?? routeTo(
      serverOptions(
        reading,
        defaultStateDirectory("server", environment),
        { readFile: () => "unread" },
        () => "any",
      ),
      reading.values,
    );
    const contexts = new Set(reading.values["contexts"]);
    print(
      formatEgressConfig(new Map([...contexts].map((name) => [name, route]))),
    );
  },
});

/** Options of a way that leads to no particular server. */
const FRONTEND_FLAGS: readonly string[] = [
  "frontend",
  "contexts",
  "protocol",
  "v",
];

function routeToFrontend(
  { values, given }: FlagReading<typeof FLAGS>,
): TunnelRoute | undefined {
  const text = values["frontend"];
  if (text === "") return undefined;
  refuseFlags(
    given,
    (name) => !FRONTEND_FLAGS.includes(name),
    "together with --frontend: it is about a server, and tunnel forward knows " +
      "its servers; remove one of them",
  );
  const path = /^(?:unix:(?:\/\/(?=\/))?)?(\/.+)$/.exec(text)?.[1];
  if (path === undefined) {
    throw unusable("--frontend", text, "unix:/path");
  }
  return {
    kind: "tunnel",
    protocol: values["protocol"] || "grpc",
    address: { kind: "unix", path },
  };
}

function routeTo({ frontend }: ServerOptions, flags: Flags): TunnelRoute {
  const { mode, listen } = frontend;
  const wanted = flags["protocol"] ||
    (listen.kind === "unix" && mode !== "http-connect"
      ? "grpc"
      : "http-connect");
  if (mode !== "auto" && mode !== wanted) {
    throw new UsageError(
      `Cannot speak ${wanted} to a server with --mode=${mode}: ` +
        (flags["protocol"] === ""
          ? "kube-apiserver speaks gRPC over unix sockets only; use --uds-name " +
            "or --mode=auto"
          : "use --mode=auto, or leave --protocol out"),
    );
  }
  return {
    kind: "tunnel",
    protocol: wanted,
    address: addressOf(listen, wanted, flags),
  };
}

function addressOf(
  listen: FrontendListen,
  protocol: FrontendProtocol,
  flags: Flags,
) {
  if (listen.kind === "unix") {
    return { kind: "unix", path: resolve(listen.path) } as const;
  }
  if (protocol === "grpc") {
    throw new UsageError(
      "Cannot use --protocol=grpc with a port: kube-apiserver speaks gRPC " +
        "over unix sockets only; use --uds-name or --protocol=http-connect",
    );
  }
  const file = (name: "ca-bundle" | "client-cert" | "client-key") => {
    const path = flags[name];
    if (path !== "") return resolve(path);
    throw new UsageError(
      `Cannot write a way to a port without --${name}: kube-apiserver and ` +
        "server authenticate each other",
    );
  };
  const { hostname, port } = listen.address;
  if (port === 0) {
    throw new UsageError(
      "Cannot write a way to --server-port=0: it is another one each time; " +
        "name one",
    );
  }
  const serverName = flags["tls-server-name"];
  return {
    kind: "tcp",
    host: flags["server-host"] || hostToDial(hostname),
    port,
    tls: {
      caFile: file("ca-bundle"),
      certFile: file("client-cert"),
      keyFile: file("client-key"),
      serverName: serverName || undefined,
    },
  } as const;
}

/** Every address of the machine is no address to connect to. */
function hostToDial(hostname: string): string {
  const isAny = ["", "0.0.0.0", "::", "[::]"].includes(hostname);
  return isAny ? "127.0.0.1" : withoutBrackets(hostname);
}

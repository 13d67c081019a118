/**
 * Words that cannot be read: commands, flags, values, configuration files and
 * variables.
 *
 * @module
 */

import { ending, type Mistake, usage } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function commandLineMistakes(stage: MistakeStage): readonly Mistake[] {
  return [
    ...commands(),
    ...flags(),
    ...values(),
    ...configs(stage),
    ...variables(),
  ];
}

// deno-fmt-ignore: the columns are the point.
function commands(): readonly Mistake[] {
  return [
    usage("a command with a slip", "sever", /Unknown command.*sever/i, /did you mean.*server/),
    usage("a command with letters swapped", "forwrad 80:a:80", /Unknown command.*forwrad/i, /did you mean.*forward/),
    usage("a command that is not there",     "frobnicate",              /Unknown command.*frobnicate/i, /tunnel help/),
    usage("help of what is not there", "help sever", /Unknown command.*sever/i, /did you mean.*server/),
    usage("a verb that is missing",          "token",                   /token wants/, /create/),
    usage("a verb with a slip",              "token crate",             /crate/, /create/),
    usage("a verb of node with a slip",      "node lst",                /lst/, /list/),
    usage("a verb of ca with a slip",        "ca rotat",                /rotat/, /rotate/),
    usage("a verb without its operand",      "node revoke",             /revoke/, /NAME/),
    usage("a verb of service that is unknown", "service regster",       /regster/, /register/),
    usage("a verb of xds that is unknown",   "xds stats",               /stats/, /status/),
    usage("completion for no shell",         "completion",              /no shell/, /bash, zsh, fish/),
    usage("completion for another shell",    "completion pwsh",         /pwsh/, /bash, zsh, fish/),
    usage("a manual page of what is not there", "man sever",            /Unknown command.*sever/i, /tunnel help/),
    usage("approve with two names",          "node approve a b",        /Unexpected word "b"/, /"b"/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function flags(): readonly Mistake[] {
  return [
    usage("a flag with a slip", "agent --sever a:1", /Unknown flag --sever/, /did you mean --server/),
    usage("a flag of the server with a slip", "server --agent-prt=1", /--agent-prt/, /did you mean --agent-port/),
    usage("a flag that is not there",        "server --wings",          /Unknown flag --wings/, /tunnel help server/),
    usage("a flag in the plural",            "dial a:1 --nodes x",      /Unknown flag --nodes/, /did you mean --node/),
    usage("a flag without its value",        "dial a:1 --node",         /value is missing/, /--node=/),
    usage("a long flag with one dash and a slip", "dial a:1 -sever=x",  /Unknown flag -sever/, /did you mean --server/),
    usage("a short flag that is not there",  "dial a:1 -z",             /Unknown flag -z/, /tunnel help dial/),
    usage("--as-node with a frontend's certificate", "dial a:1 --as-node --cert x --key y", /--cert/, /--agent-cert/),
    usage("an etcd flag with a slip", "proxy --etcd-sevrers=http://a:1", /etcd-sevrers/, /did you mean --etcd-servers/),
    usage("a flag that nobody knows", "agent --serve-me", /Unknown flag/, /tunnel help agent/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function values(): readonly Mistake[] {
  return [
    usage("a duration in days",              "token create --ttl 1day", /--ttl.*1day/, /24h/),
    usage("a duration without a unit",       "dial a:1 --dial-timeout 5", /--dial-timeout.*"5"/, /5s|1\.5s/),
    usage("a size with an unknown unit",     "server --message-size-limit 5X", /5X/, /4MiB|KiB/),
    usage("a port above all ports",          "server --agent-port 99999", /99999/, /65535/),
    usage("a port below all ports",          "server --agent-port=-1",  /-1/, /65535/),
    usage("a boolean that is none",          "agent --sync-forever=maybe", /maybe/, /true or false/),
    usage("a choice that is none",           "server --node-binding=strict", /strict/, /enforce/),
    usage("a mode that is none",             "server --mode=socks",     /socks/, /http-connect/),
    usage("a log format that is none",       "server --log-format=xml", /xml/, /json/),
    usage("a count of servers of 0",         "server --server-count 0", /server-count.*"0"/, /1/),
    usage("a strategy that is none",         "server --proxy-strategies=roundrobin", /roundrobin/, /destHost/),
    usage("a target without a port",         "dial db.internal",        /db\.internal/, /HOST:PORT/),
    usage("no target",                       "dial",                    /target/, /HOST:PORT/),
    usage("two targets",                     "dial a:1 b:2",            /2 targets/, /one HOST:PORT/),
    usage("IPv6 without brackets",           "dial ::1:22",             /::1:22/, /brackets/),
    usage("a port of 0 to dial",             "dial a:0",                /port 0/, /1 to 65535/),
    usage("a port with a name to dial",      "dial a:http",             /a:http/, /HOST:PORT/),
    usage("a URL to dial",                   "dial http://a:80",        /http:\/\/a:80/, /HOST:PORT/),
    usage("nothing to forward",              "forward",                 /forward nothing/, /PORT:HOST:PORT/),
    usage("a forward without a target",      "forward 8080",            /8080/, /PORT:HOST:PORT/),
    usage("a forward of ssh's other kind",   "forward 8080:80",         /8080:80/, /PORT:HOST:PORT/),
    usage("a forward with a port too high",  "forward 99999:a:80",      /99999/, /65535/),
    usage("a server as a URL", "agent --ca-cert=x --server=https://tunnel.example:8091", /https:/, /HOST:PORT/),
    usage("a server with a path",            "join t --server=tunnel.example:8091/x", /Cannot/, /HOST:PORT|token/),
    usage("identifiers of an unknown kind", "agent --ca-cert=x --server=a:1 --identifiers=name=x", /name/, /host/),
    usage("a rule that is none",             "agent --allow=10.0.0.0/8", /10\.0\.0\.0\/8/, /\*:|tcp:/),
    usage("a rule with a bad network",       "agent --deny=tcp:10.0.0.0/99:*", /10\.0\.0\.0\/99/, /32|network|CIDR/i),
    usage("an announcement that is none",    "agent --announce=web",    /web/, /=|NAME/),
    usage("a token's node pattern that is no name", "token create --node=Edge_7", /Edge_7/, /lower|letters|wanted/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function configs(stage: MistakeStage): readonly Mistake[] {
  const config = ending(2, (words) => ["server", `--config=${words}`]);
  const yaml = (text: string) => stage.file("config.yaml", text);
  return [
    config("a config file that is missing", "/nowhere/tunnel.yaml", /\/nowhere\/tunnel\.yaml/, /no such file/i),
    config("a config file that is a list", yaml("- a\n- b\n"), /map/, /map of/),
    config("a config file with a bad indent",
      yaml("agent-port: 1\n  health-port: 2\n"), /not YAML/, /line 2|line 1|\b2\b/),
    config("a config file with an unknown key", yaml("agent-prt: 1\n"), /agent-prt/, /did you mean agent-port/),
    config("a config file with a wrong type", yaml("agent-port: {a: 1}\n"), /agent-port/, /a number|text/),
    config("a config file with a bad value", yaml("agent-port: many\n"), /"agent-port" in .*many/, /65535/),
    config("a config file that says it twice", yaml("agent-port: 1\nagent_port: 2\n"), /twice/, /keep one/),
    config("a config file of another kind",
      stage.file("config.toml", "a = 1\n"), /neither \.json nor \.yaml/, /\.yaml/),
    config("a config file that is broken JSON", stage.file("config.json", '{"agent-port": 1'), /not JSON/, /JSON/,),
    config("a config file that is a directory", stage.directory("config.yaml"), /config\.yaml/, /directory/i),
  ];
}

// deno-fmt-ignore: the columns are the point.
function variables(): readonly Mistake[] {
  const server = (what: string, env: Mistake["env"], says: RegExp, next: RegExp) =>
    usage(what, "server", says, next, { env: env! });
  return [
    server("a variable with a bad value", { TUNNEL_AGENT_PORT: "many" }, /\$TUNNEL_AGENT_PORT.*many/, /65535/),
    server("a variable with a slip",
      { TUNNEL_AGENT_PRT: "9091" }, /TUNNEL_AGENT_PRT/, /did you mean \$?TUNNEL_AGENT_PORT/),
    server("sockets that are none", { TUNNEL_SOCKETS: "fast" }, /TUNNEL_SOCKETS.*fast/, /platform, thread, ring/),
    server("a TLS that is none", { TUNNEL_TLS: "fast" }, /TUNNEL_TLS.*fast/, /platform, openssl/),
  ];
}

/**
 * Words that cannot be read: commands, values, configuration files and a
 * variable. What is said of flags in general is in `cli/flags/`.
 *
 * @module
 */

import { ending, type Mistake, usage } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function commandLineMistakes(stage: MistakeStage): readonly Mistake[] {
  return [
    ...commands(),
    ...values(),
    ...configs(stage),
    usage(
      "a variable with a slip",
      "server",
      /TUNNEL_AGENT_PRT/,
      /did you mean \$?TUNNEL_AGENT_PORT/,
      {
        env: { TUNNEL_AGENT_PRT: "9091" },
      },
    ),
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
function values(): readonly Mistake[] {
  return [
    usage("a duration in days",              "token create --ttl 1day", /--ttl.*1day/, /24h/),
    usage("a size with an unknown unit",     "server --message-size-limit 5X", /5X/, /4MiB|KiB/),
    usage("a port below all ports",          "server --agent-port=-1",  /-1/, /65535/),
    usage("a log format that is none",       "server --log-format=xml", /xml/, /json/),
    usage("a count of servers of 0",         "server --server-count 0", /server-count.*"0"/, /1/),
    usage("a target without a port",         "dial db.internal",        /db\.internal/, /HOST:PORT/),
    usage("no target",                       "dial",                    /target/, /HOST:PORT/),
    usage("two targets",                     "dial a:1 b:2",            /2 targets/, /one HOST:PORT/),
    usage("nothing to forward",              "forward",                 /forward nothing/, /PORT:HOST:PORT/),
    usage("a server with a path",            "join t --server=tunnel.example:8091/x", /Cannot/, /HOST:PORT|token/),
    usage("a rule that is none",             "agent --allow=10.0.0.0/8", /10\.0\.0\.0\/8/, /\*:|tcp:/),
    usage("a rule with a bad network",       "agent --deny=tcp:10.0.0.0/99:*", /10\.0\.0\.0\/99/, /32|network|CIDR/i),
    usage("a token's node pattern that is no name", "token create --node=Edge_7", /Edge_7/, /lower|letters|wanted/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function configs(stage: MistakeStage): readonly Mistake[] {
  const config = ending(2, (words) => ["server", `--config=${words}`]);
  const yaml = (text: string) => stage.file("config.yaml", text);
  return [
    config("a config file with a bad indent",
      yaml("agent-port: 1\n  health-port: 2\n"), /not YAML/, /line 2|line 1|\b2\b/),
    config("a config file with a wrong type", yaml("agent-port: {a: 1}\n"), /agent-port/, /a number|text/),
    config("a config file that is a directory", stage.directory("config.yaml"), /config\.yaml/, /directory/i),
  ];
}

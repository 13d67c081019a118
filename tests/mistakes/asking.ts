/**
 * Asking a running tunnel about itself: nodes, connections and codes that there
 * are not, programs that do not run, words that are missing.
 *
 * What `doctor` and `trace` find is what was asked for, so they print it where
 * answers go; only how they are called is here.
 *
 * @module
 */

import { ending, type Mistake, usage } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function askingMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...usages(), ...unknowns(stage), ...absent(stage)];
}

// deno-fmt-ignore: the columns are the point.
function usages(): readonly Mistake[] {
  return [
    usage("status in a form that is none",  "status -o xml",             /xml/, /table, wide, json, yaml/),
    usage("status of a port that is none",  "status --server=a:http",    /a:http/, /HOST:PORT/),
    usage("an interval without a unit",     "status --watch --interval=1", /"1"/, /1\.5s|100ms/),
    usage("a verb of conn with a slip",     "conn lst",                  /lst/, /list, kill/),
    usage("doctor of what is none",         "doctor planet",             /planet/, /node NAME or target HOST:PORT/),
    usage("doctor of a node without a name", "doctor node",              /node/, /tunnel doctor node NAME/),
    usage("doctor of no target",            "doctor target",             /target/, /HOST:PORT/),
    usage("doctor of a target without a port", "doctor target db",       /"db"/, /HOST:PORT/),
    usage("ping without a node",            "ping",                      /one node/, /tunnel ping NODE/),
    usage("ping of two nodes",              "ping a b",                  /one node/, /tunnel ping NODE/),
    usage("ping of no times",               "ping a --count=0",          /"0"/, /from 1/),
    usage("trace without a target",         "trace",                     /Cannot trace/, /HOST:PORT/),
    usage("trace of a target without a port", "trace node1 db",          /"db"/, /HOST:PORT/),
    usage("a verb of policy with a slip",   "policy tset a:1",           /tset/, /test/),
    usage("a policy test of nobody",        "policy test a:1",           /--as/, /node:NAME/),
    usage("a policy test of two nodes",     "policy test --as=x --node=b a c:1", /--node b/, /keep one/),
    usage("explain nothing",                "explain",                   /nothing/, /TUN503|--all/),
    usage("explain a code that is none",    "explain TUN999",            /TUN999/, /did you mean TUN\d+|--all/),
    usage("explain a word",                 "explain hello",             /hello/, /--all/),
    usage("config without a verb",          "config",                    /Nothing to do/, /check FILE/),
    usage("a verb of config with a slip",   "config chek",               /chek/, /check FILE/),
    usage("config check of nothing",        "config check",              /nothing/, /check FILE/),
    usage("config check of a file that is missing", "config check /nowhere.yaml", /\/nowhere\.yaml/, /no such file/),
    usage("flags of a command that has no such file", "config print planet", /planet/, /one of server/),
    usage("a schema that is none",          "config schema planet",      /planet/, /config schema lists/),
    usage("a support bundle with a word",   "support-bundle please",     /please/, /--output=please/),
    usage("a certificate without its key",  "status --server=a:1 --cert=x", /--cert alone/, /give both/),
    usage("a dashboard of a word",          "dashboard please",          /please/, /flags begin with --/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function unknowns(stage: MistakeStage): readonly Mistake[] {
  const ask = ending(1, (words) => [...words, stage.asked]);
  return [
    ask("describe a node with a slip", "node describe nod1", /"nod1"/, /did you mean "node1"/),
    ask("describe a node that was never there", "node describe warehouse", /"warehouse"/, /tunnel node list/),
    ask("kill what is over", "conn kill 0123456789abcdef", /0123456789abcdef/, /tunnel conn list/),
    ask("ping a node that was never there", "ping warehouse", /warehouse/, /tunnel doctor node warehouse/),
    ask("ping a node that is gone", "ping gone", /gone/, /tunnel doctor node gone/),
  ];
}

function absent(stage: MistakeStage): readonly Mistake[] {
  const { closedPort } = stage;
  const none = `--state-dir=${stage.path("none")}`;
  const ask = (command: string, where: string) =>
    ending(1)(
      `${command} of a program that does not run (${
        where === none ? "no state" : where.replace(`${closedPort}`, "PORT")
      })`,
      [...command.split(" "), where],
      /Cannot ask/,
      /is it running|--server/,
    );
  const commands = [
    "status",
    "node describe node1",
    "conn list",
    "top --count=1",
    "ping node1",
  ];
  const at = `--server=127.0.0.1:${closedPort}`;
  return [
    ...commands.map((command) => ask(command, at)),
    ask("status", none),
    ask("conn list", "--server=unix:/nowhere.sock"),
    ask("dashboard", at),
  ];
}

/**
 * Service proxies, catalogs and their sources; and asking programs that do not
 * run.
 *
 * @module
 */

import { ANY_SERVER, ending, type Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function serviceMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...catalogs(stage), ...questions(stage)];
}

// deno-fmt-ignore: the columns are the point.
function catalogs(stage: MistakeStage): readonly Mistake[] {
  const argsOf = (words: readonly string[]) => ["proxy", "--admin-port=0", ...words];
  const [proxy, misused] = [ending(1, argsOf), ending(2, argsOf)];
  const of = (text: string) => `--config=${stage.file("services.yaml", text)}`;
  return [
    misused("a proxy without a source", [], /source|nothing to serve|services/i, /--config/),
    proxy("services in a file that is missing", ["--config=/nowhere.yaml"], /\/nowhere\.yaml/, /no such file/i),
    proxy("services in a file that is no YAML", [of("services: [\n")], /services\.yaml/, /line/),
    proxy("services with a field that is none",
      [of("services:\n  - name: a\n    prt: 1\n")], /prt/, /did you mean|wanted|line/),
    proxy("services with a port that is none", [of("services:\n  - name: a\n    port: many\n")], /port/, /line|wanted/),
    proxy("services in a directory", [`--config=${stage.directory("services.yaml")}`], /services\.yaml/, /directory/i),
    misused("two files of services", [of("services: []\n"), of("services: []\n")], /--config/, /one|twice/),
    proxy("print-env of a file that is missing",
      ["--config=/nowhere.yaml", "--print-env"], /\/nowhere\.yaml/, /no such file/i),
    misused("discovery where nobody has joined",
      ["--discovery=127.0.0.1:1", `--state-dir=${stage.path("none")}`], /no identity/, /tunnel join/),
    ending(1)("a server's services in a file that is missing",
      [...ANY_SERVER, `--state-dir=${stage.path("server")}`, "--discovery", "--discovery-config=/nowhere.yaml"],
      /\/nowhere\.yaml/, /no such file/i),
    ending(2)("registering without etcd", "service register web --endpoint=127.0.0.1:80", /etcd/, /--etcd/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function questions(stage: MistakeStage): readonly Mistake[] {
  const closed = `127.0.0.1:${stage.closedPort}`;
  const ask = ending(1);
  return [
    ask("services of a proxy that does not run",
      ["services", `--proxy=${closed}`], /Cannot/, /running|--proxy|--server/),
    ask("endpoints of a proxy that does not run",
      ["endpoints", "web", `--proxy=${closed}`], /Cannot/, /running|--proxy|--server/),
    ask("xds status of a server that does not run",
      ["xds", "status", `--server=${closed}`], /Cannot/, /running|--proxy|--server/),
    ask("adsc where nobody listens",
      ["adsc", "proxy", `--server=http://${closed}`], /Cannot|refused/, /running|server/),
    ending(2)("a demo with a word too many", ["demo", "please"], /please/, /tunnel help|wanted|flags|none/),
    ending(2)("a version with a word too many", ["version", "please"], /please/, /tunnel help|wanted|flags|none/),
  ];
}

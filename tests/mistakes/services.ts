/**
 * Service proxies, catalogs and their sources; and asking programs that do not
 * run.
 *
 * @module
 */

import { ANY_SERVER, type Mistake } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";

/** See the module description. */
export function serviceMistakes(stage: MistakeStage): readonly Mistake[] {
  return [...catalogs(stage), ...questions(stage)];
}

// deno-fmt-ignore: the columns are the point.
// deno-lint-ignore tunnel/function-length -- it is a table.
function catalogs(stage: MistakeStage): readonly Mistake[] {
  const proxy = (
    what: string,
    exit: 1 | 2,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: ["proxy", "--admin-port=0", ...words],
    exit,
    says,
    next,
  });
  const of = (text: string) => `--config=${stage.file("services.yaml", text)}`;
  return [
    proxy("a proxy without a source", 2, [], /source|nothing to serve|services/i, /--config/),
    proxy("services in a file that is missing", 1, ["--config=/nowhere.yaml"], /\/nowhere\.yaml/, /no such file/i),
    proxy("services in a file that is no YAML", 1, [of("services: [\n")], /services\.yaml/, /line/),
    proxy(
      "services with a field that is none",
      1,
      [of("services:\n  - name: a\n    prt: 1\n")],
      /prt/,
      /did you mean|wanted|line/,
    ),
    proxy(
      "services with a port that is none",
      1,
      [of("services:\n  - name: a\n    port: many\n")],
      /port/,
      /line|wanted/,
    ),
    proxy(
      "services in a directory",
      1,
      [`--config=${stage.directory("services.yaml")}`],
      /services\.yaml/,
      /directory/i,
    ),
    proxy("two files of services", 2, [of("services: []\n"), of("services: []\n")], /--config/, /one|twice/),
    proxy(
      "print-env of a file that is missing",
      1,
      ["--config=/nowhere.yaml", "--print-env"],
      /\/nowhere\.yaml/,
      /no such file/i,
    ),
    proxy(
      "discovery where nobody has joined",
      2,
      ["--discovery=127.0.0.1:1", `--state-dir=${stage.path("none")}`],
      /no identity/,
      /tunnel join/,
    ),
    {
      what: "a server's services in a file that is missing",
      args: [
        ...ANY_SERVER,
        `--state-dir=${stage.path("server")}`,
        "--discovery",
        "--discovery-config=/nowhere.yaml",
      ],
      exit: 1,
      says: /\/nowhere\.yaml/,
      next: /no such file/i,
    },
    {
      what: "registering without etcd",
      args: ["service", "register", "web", "--endpoint=127.0.0.1:80"],
      exit: 2,
      says: /etcd/,
      next: /--etcd/,
    },
  ];
}

// deno-fmt-ignore: the columns are the point.
function questions(stage: MistakeStage): readonly Mistake[] {
  const closed = `${stage.closedPort}`;
  const ask = (
    what: string,
    words: readonly string[],
    says: RegExp,
    next: RegExp,
    exit: 1 | 2 = 1,
  ): Mistake => ({ what, args: words, exit, says, next });
  return [
    ask(
      "services of a proxy that does not run",
      ["services", `--proxy=127.0.0.1:${closed}`],
      /Cannot/,
      /running|--proxy|--server/,
    ),
    ask(
      "endpoints of a proxy that does not run",
      ["endpoints", "web", `--proxy=127.0.0.1:${closed}`],
      /Cannot/,
      /running|--proxy|--server/,
    ),
    ask(
      "xds status of a server that does not run",
      ["xds", "status", `--server=127.0.0.1:${closed}`],
      /Cannot/,
      /running|--proxy|--server/,
    ),
    ask(
      "adsc where nobody listens",
      ["adsc", "proxy", `--server=http://127.0.0.1:${closed}`],
      /Cannot|refused/,
      /running|server/,
    ),
    ask("a demo with a word too many", ["demo", "please"], /please/, /tunnel help|wanted|flags|none/, 2),
    ask("a version with a word too many", ["version", "please"], /please/, /tunnel help|wanted|flags|none/, 2),
  ];
}

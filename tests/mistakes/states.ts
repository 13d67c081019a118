/**
 * State directories and what is asked of them: files that are lost or somebody
 * else's, nodes and tokens that there are not.
 *
 * @module
 */

import { ANY_SERVER, type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";
import { withoutPrivilege } from "./without_privilege.ts";

/** See the module description. */
export function stateMistakes(stage: MistakeStage): readonly Mistake[] {
  return [
    ...agentStates(stage),
    ...serverStates(stage),
    ...administration(stage),
  ];
}

// deno-fmt-ignore: the columns are the point.
function agentStates(stage: MistakeStage): readonly Mistake[] {
  const agent = (
    what: string,
    exit: 1 | 2,
    directory: string,
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: [...QUIET_AGENT, `--state-dir=${directory}`],
    exit,
    says,
    next,
  });
  const others = stage.directory("others", { "notes.txt": "mine" });
  return [
    agent("a state directory that is a file", 1, stage.file("state", "text"), /no directory/, /name another/),
    agent("a state directory with other files", 2, others, /no identity/, /--join|--state-dir/),
    agent(
      "a node.json that is cut",
      1,
      stage.copyOfNode(
        "cut",
        (path) => Deno.truncateSync(`${path}/node.json`, 20),
      ),
      /node\.json/,
      /restore|join with a new token/,
    ),
    agent(
      "a key that is lost",
      1,
      stage.copyOfNode("lost", (path) => Deno.removeSync(`${path}/key.pem`)),
      /key\.pem is missing/,
      /restore|join with a new token/,
    ),
    agent(
      "a key that everybody can read",
      1,
      stage.copyOfNode(
        "open",
        (path) => Deno.chmodSync(`${path}/key.pem`, 0o644),
      ),
      /key\.pem/,
      /chmod/,
    ),
    ...["agent", "dial", "forward"].map((command): Mistake => {
      const directory = stage.copyOfNode(`${command}s`);
      return {
        what: `${command} as somebody else than the owner of the identity`,
        args: [
          ...command === "agent"
            ? QUIET_AGENT
            : [command, command === "dial" ? "a:1" : "0:a:1", "--as-node"],
          `--state-dir=${directory}`,
        ],
        exit: 1,
        says: /permission denied/i,
        next: /run as its owner/,
        ...withoutPrivilege(directory),
      };
    }),
  ];
}

// deno-fmt-ignore: the columns are the point.
function serverStates(stage: MistakeStage): readonly Mistake[] {
  const server = (
    what: string,
    directory: string,
    says: RegExp,
    next: RegExp,
  ): Mistake => ({
    what,
    args: [...ANY_SERVER, `--state-dir=${directory}`],
    exit: 1,
    says,
    next,
  });
  const copy = (name: string, change: (path: string) => void) => {
    const path = stage.path(name);
    copyTree(stage.identity.stateDirectory, path);
    change(path);
    return path;
  };
  return [
    server(
      "a second server of one state directory",
      stage.identity.stateDirectory,
      /already|another (?:process|server)/,
      /pid|--state-dir|--replace/,
    ),
    server(
      "a server's directory that others may write to",
      copy("open", (path) => Deno.chmodSync(path, 0o777)),
      /open|others|mode/,
      /chmod/,
    ),
    server(
      "a server's directory with other files",
      stage.directory("others", { "notes.txt": "mine" }),
      /notes\.txt/,
      /--state-dir/,
    ),
    server(
      "an agent's directory for a server",
      stage.copyOfNode("agents"),
      /node\.json|cert\.pem|key\.pem|agent/,
      /--state-dir/,
    ),
    server("a server's directory that is a file", stage.file("state", "text"), /no directory/, /name another/),
    server("a server's directory that cannot be made", "/proc/tunnel", /\/proc\/tunnel/, /name|run as/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function administration(stage: MistakeStage): readonly Mistake[] {
  const state = `--state-dir=${stage.identity.stateDirectory}`;
  const none = `--state-dir=${stage.path("never")}`;
  const run = (
    what: string,
    words: string,
    says: RegExp,
    next: RegExp,
    where = state,
  ): Mistake => ({
    what,
    args: [...words.split(" "), where],
    exit: 1,
    says,
    next,
  });
  const noServer = [/no server|never/i, /tunnel server|--state-dir/] as const;
  return [
    run("revoke of an unknown node", "node revoke nod1", /"nod1"/, /did you mean.*node1|node list/),
    run("forget of an unknown node", "node forget nowhere", /nowhere/, /node list/),
    run("approve of an unknown node", "node approve nowhere", /nowhere/, /node list/),
    run("revoke of an unknown token", "token revoke tok1", /tok1/, /token list/),
    run("activate before rotate", "ca activate", /activate|next/, /ca rotate/),
    run("retire before activate", "ca retire", /retire|old|second/, /ca rotate|ca activate/),
    run("a token where no server has been", "token create", ...noServer, none),
    run("nodes where no server has been", "node list", ...noServer, none),
    run("authorities where no server has been", "ca show", ...noServer, none),
  ];
}

function copyTree(from: string, to: string): void {
  Deno.mkdirSync(to, { mode: 0o700 });
  for (const { name, isFile, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) copyTree(`${from}/${name}`, `${to}/${name}`);
    if (isFile) Deno.copyFileSync(`${from}/${name}`, `${to}/${name}`);
  }
}

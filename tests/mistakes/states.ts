/**
 * State directories and what is asked of them: files that are lost or somebody
 * else's, nodes and tokens that there are not.
 *
 * @module
 */

import { ANY_SERVER, ending, type Mistake, QUIET_AGENT } from "./mistake.ts";
import type { MistakeStage } from "./mistake_stage.ts";
import { withoutPrivilege } from "./surroundings.ts";

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
  const agent = ending(1, (words) => [...QUIET_AGENT, `--state-dir=${words}`]);
  const others = stage.directory("others", { "notes.txt": "mine" });
  return [
    agent("a state directory that is a file", stage.file("state", "text"), /no directory/, /name another/),
    agent("a state directory with other files", others, /no identity/, /--join|--state-dir/, { exit: 2 }),
    agent("a node.json that is cut",
      stage.copyOfNode("cut", (path) => Deno.truncateSync(`${path}/node.json`, 20)), /node\.json/,
      /restore|join with a new token/),
    agent("a key that is lost",
      stage.copyOfNode("lost", (path) => Deno.removeSync(`${path}/key.pem`)), /key\.pem is missing/,
      /restore|join with a new token/),
    agent("a key that everybody can read",
      stage.copyOfNode("open", (path) => Deno.chmodSync(`${path}/key.pem`, 0o644)), /key\.pem/, /chmod/),
    ...["agent", "dial", "forward"].map((command) => {
      const directory = stage.copyOfNode(`${command}s`);
      const words = command === "agent"
        ? QUIET_AGENT
        : [command, command === "dial" ? "a:1" : "0:a:1", "--as-node"];
      return ending(1, (where) => [...words, ...where])(
        `${command} as somebody else than the owner of the identity`, `--state-dir=${directory}`,
        /permission denied/i, /run as its owner/, withoutPrivilege(directory),
      );
    }),
  ];
}

// deno-fmt-ignore: the columns are the point.
function serverStates(stage: MistakeStage): readonly Mistake[] {
  const server = ending(1, (words) => [...ANY_SERVER, `--state-dir=${words}`]);
  return [
    server("a second server of one state directory",
      stage.identity.stateDirectory, /already|another (?:process|server)/, /pid|--state-dir|--replace/),
    server("a server's directory that others may write to",
      stage.copyOfServer("open", (path) => Deno.chmodSync(path, 0o777)), /open|others|mode/, /chmod/),
    server("a server's directory with other files",
      stage.directory("others", {"notes.txt": "mine" }), /notes\.txt/, /--state-dir/),
    server("an agent's directory for a server",
      stage.copyOfNode("agents"), /node\.json|cert\.pem|key\.pem|agent/, /--state-dir/),
    server("a server's directory that is a file", stage.file("state", "text"), /no directory/, /name another/),
    server("a server's directory that cannot be made", "/proc/tunnel", /\/proc\/tunnel/, /name|run as/),
  ];
}

// deno-fmt-ignore: the columns are the point.
function administration(stage: MistakeStage): readonly Mistake[] {
  const none = `--state-dir=${stage.path("never")}`;
  const run = ending(1, (words) => [...words, stage.asked]);
  const nowhere = ending(1, (words) => [...words, none]);
  const noServer = [/no server|never/i, /tunnel server|--state-dir/] as const;
  return [
    run("revoke of an unknown node", "node revoke nod1", /"nod1"/, /did you mean.*node1|node list/),
    run("forget of an unknown node", "node forget nowhere", /nowhere/, /node list/),
    run("approve of an unknown node", "node approve nowhere", /nowhere/, /node list/),
    run("revoke of an unknown token", "token revoke tok1", /tok1/, /token list/),
    run("activate before rotate", "ca activate", /activate|next/, /ca rotate/),
    run("retire before activate", "ca retire", /retire|old|second/, /ca rotate|ca activate/),
    nowhere("a token where no server has been", "token create", ...noServer),
    nowhere("nodes where no server has been", "node list", ...noServer),
    nowhere("authorities where no server has been", "ca show", ...noServer),
  ];
}

/**
 * `tunnel.cmd`, which starts the runtime beside it with the rights of a command,
 * as `launcher.ts` does where there is a shell. It unpacks nothing.
 *
 * Only Wine runs it here: it is as plain as possible.
 *
 * @module
 */

import type { Command } from "../cli/program/command.ts";
import { RIGHTS, type Rights, RUNS_PROGRAMS } from "../cli/program/rights.ts";
import { VERSION } from "../platform/process/version.ts";
import { RUN_FLAGS } from "./package.ts";

/** The script, with the ends of lines of Windows. */
export function windowsScript(
  commands: readonly Pick<Command, "name" | "rights">[],
): string {
  const having = (wanted: Rights) =>
    commands.filter(({ rights }) => rights === wanted)
      .map(({ name }) => name).join(" ");
  const variables = RUNS_PROGRAMS.variables
    .map((name) => `if defined ${name} set "plugins=yes"`).join("\n");
  const text = `@echo off
rem tunnel ${VERSION} for Windows: starts the Deno runtime with the program.
setlocal DisableDelayedExpansion
set "rights=look"
set "command=%~1"
for %%c in (${having("network")}) do if "%command%"=="%%c" set "rights=network"
for %%c in (${
    having("programs")
  }) do if "%command%"=="%%c" set "rights=programs"

rem Only with a kubeconfig or workers may a command of the network run others.
set "plugins="
${variables}
if defined TUNNEL_CONFIG call :look "%TUNNEL_CONFIG%"
set "before="
:next
if [%1]==[] goto start
rem An equals sign ends a word here.
set "word=%~1"
if not defined word goto shifted
${RUNS_PROGRAMS.flags.flatMap(conditions).join("\n")}
if "%before%"=="-config" call :look "%word%"
if "%before%"=="--config" call :look "%word%"
:shifted
set "before=%word%"
shift /1
goto next

:look
findstr /r "kube[-_]*config workers" "%~1" >nul 2>nul && set "plugins=yes"
exit /b 0

:start
if "%rights%"=="network" if defined plugins set "rights=programs"
set "allow=${RIGHTS.look.join(" ")}"
if "%rights%"=="network" set "allow=${RIGHTS.network.join(" ")}"
if "%rights%"=="programs" set "allow=${RIGHTS.programs.join(" ")}"
set "DENO_NO_UPDATE_CHECK=1"
set "DENO_DIR=%LOCALAPPDATA%\\tunnel\\deno"
rem State is this user's alone there.
if not defined XDG_STATE_HOME set "XDG_STATE_HOME=%LOCALAPPDATA%"
"%~dp0deno.exe" run ${RUN_FLAGS.join(" ")} %allow% "%~dp0program\\main.js" %*
exit /b %errorlevel%
`;
  return text.replaceAll("\n", "\r\n");
}

/** Lines that hold when `%word%` is a flag of {@linkcode RUNS_PROGRAMS}. */
function conditions(flag: string): readonly string[] {
  if (!flag.startsWith("-*")) {
    return [`if "%word%"=="${flag}" set "plugins=yes"`];
  }
  const ending = flag.slice("-*".length);
  return ["-", "_"].map((between) => ending.replace("[-_]", between))
    .filter((text, index, all) => all.indexOf(text) === index)
    .map((text) =>
      `if "%word:~0,1%"=="-" if "%word:~-${text.length}%"=="${text}" ` +
      'set "plugins=yes"'
    );
}

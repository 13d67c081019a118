/**
 * The frame of the page: the server's name, whether its data are current, and
 * the views.
 *
 * @module
 */

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { notice, said } from "./announce.ts";
import { stateCell } from "../view/cells.ts";
import { programState } from "../view/status.ts";
import { CellText } from "./cell.tsx";
import { Certificates, Discovery, Services } from "./asked_lists.tsx";
import { ConduitList } from "./conduit_list.tsx";
import { ConfirmDialog, role } from "./confirm.tsx";
import { Log } from "./log.tsx";
import { Said } from "./marks.tsx";
import { NodeList } from "./node_list.tsx";
import { Overview } from "./overview.tsx";
import {
  programName,
  type StatusAnswer,
} from "../../proto/admin/status_answer.ts";
import { clockText, peerText } from "./units.ts";
import { place, placeLink } from "./place.ts";
import {
  clock,
  follow,
  following,
  followNow,
  type ListName,
  status,
} from "./server_state.ts";
import { chooseTheme, type Theme, theme } from "./theme.ts";
import { countText } from "../../platform/text/quantities.ts";

interface View {
  readonly name: string;
  readonly title: string;
  /** The lists that it follows. */
  readonly lists: readonly ListName[];
  readonly shown: () => VNode;
  count?(status: StatusAnswer): number | undefined;
}

const VIEWS: readonly View[] = [
  { name: "overview", title: "Overview", lists: ["events"], shown: Overview },
  {
    name: "nodes",
    title: "Nodes",
    lists: ["nodes", "events"],
    shown: NodeList,
    count: ({ nodes }) =>
      nodes && nodes.online + nodes.offline + nodes.pending + nodes.revoked,
  },
  {
    name: "conduits",
    title: "Connections",
    lists: ["conduits", "events"],
    shown: ConduitList,
    count: ({ traffic }) => traffic.conduits,
  },
  { name: "services", title: "Services", lists: ["events"], shown: Services },
  {
    name: "discovery",
    title: "Discovery",
    lists: ["events"],
    shown: Discovery,
    count: ({ discovery }) => discovery?.clients,
  },
  {
    name: "certificates",
    title: "Certificates",
    lists: ["events"],
    shown: Certificates,
  },
  { name: "log", title: "Log", lists: ["events"], shown: Log },
];

/** See the module description. */
export function App(): VNode {
  const view = VIEWS.find(({ name }) => name === place.value.view) ?? VIEWS[0]!;
  useEffect(() => follow(view.lists), [view]);
  useEffect(() => {
    const program = status.peek()?.program;
    const name = program === undefined ? "tunnel" : programName(program);
    document.title = `${view.title} · ${peerText(name)}`;
    document.getElementById("main")?.scrollTo(0, 0);
    document.querySelector("nav [aria-current]")
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [view, status.value === undefined]);
  useEffect(() => {
    addEventListener("keydown", findBySlash);
    return () => removeEventListener("keydown", findBySlash);
  }, []);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          // The hash says which view is shown.
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <Top />
      <Navigation current={view} />
      <main id="main" tabIndex={-1} class={`view-${view.name}`}>
        <Connection />
        {view.name === "overview" && <h1 class="unseen">Overview</h1>}
        <view.shown key={view.name} />
      </main>
      <Notices />
      <ConfirmDialog />
    </>
  );
}

function Top(): VNode {
  const program = status.value?.program;
  const isLive = following.value.kind === "live";
  return (
    <header class="top">
      <a class="brand" href={placeLink("overview")}>tunnel</a>
      <p class="who">
        {program && (
          <>
            <Said text={programName(program)} />{" "}
            <span class="faint is-spare">
              <Said text={program.version} />
            </span>
          </>
        )}
      </p>
      {program && programState(program) !== "ready" && (
        <CellText cell={stateCell(programState(program))} />
      )}
      <p class="live">
        <span class={`dot${isLive ? " is-live" : ""}`} aria-hidden="true" />
        {isLive ? "live" : "not live"}
      </p>
      {role === "view" && <span class="tag is-calm">view only</span>}
      <ThemeChoice />
    </header>
  );
}

const THEMES: readonly Theme[] = ["auto", "light", "dark"];

function ThemeChoice(): VNode {
  return (
    <label class="theme">
      <span class="unseen">Colours</span>
      <select
        value={theme.value}
        onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
      >
        {THEMES.map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
    </label>
  );
}

function Navigation({ current }: { readonly current: View }): VNode {
  return (
    <nav aria-label="Views">
      <ul>
        {VIEWS.map((view) => {
          const count = status.value && view.count?.(status.value);
          return (
            <li key={view.name}>
              <a
                href={placeLink(view.name)}
                {...(view === current ? { "aria-current": "page" } : {})}
              >
                {view.title}
                {count !== undefined && (
                  <span class="count">{countText(count)}</span>
                )}
              </a>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

/** Announces that the shown data are out of date. */
function Connection(): VNode {
  const now = following.value;
  const seen = status.value && clockText(clock.value);
  return (
    <div role="status" class="connection">
      {now.kind === "lost" && (
        <p class="banner is-warn">
          <span>
            The server does not answer.{" "}
            {seen !== undefined && `What you see is of ${seen}. `}
            <Retry atMs={now.nextMs} />
          </span>
          <button type="button" class="button" onClick={followNow}>
            Try now
          </button>
        </p>
      )}
      {now.kind === "ended" && (
        <p class="banner is-bad">
          <span>
            This login has ended. Type <code>tunnel dashboard</code>{" "}
            on the server's machine for another link.
          </span>
        </p>
      )}
    </div>
  );
}

function Retry({ atMs }: { readonly atMs: number }): VNode {
  const [, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTurn((turn) => turn + 1), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((atMs - Date.now()) / 1000));
  // A screen reader is told once about a lost connection, not each second.
  return (
    <span aria-hidden="true">
      {seconds > 0 ? `Trying again in ${seconds} s.` : "Trying again …"}
    </span>
  );
}

function Notices(): VNode {
  const shown = notice.value;
  return (
    <>
      <div class="unseen" role="status" aria-live="polite">{said.value}</div>
      <div class="notices" role={shown?.isBad ? "alert" : "status"}>
        {shown && (
          <p class={`notice is-${shown.isBad ? "bad" : "good"}`}>
            <bdi>{shown.text}</bdi>
            <button
              type="button"
              class="button"
              aria-label="Dismiss"
              onClick={() => notice.value = undefined}
            >
              ✕
            </button>
          </p>
        )}
      </div>
    </>
  );
}

/** `/` goes to the field that searches, as in many programs. */
function findBySlash(event: KeyboardEvent): void {
  if (event.key !== "/" || event.ctrlKey || event.metaKey) return;
  const target = event.target as HTMLElement;
  if (/^(?:INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  const field = document.querySelector<HTMLInputElement>("[data-search]");
  if (field === null || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  field.focus();
}

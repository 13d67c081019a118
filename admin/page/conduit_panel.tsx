/**
 * One conduit in full, and its end.
 *
 * @module
 */

import type { VNode } from "preact";
import { ADMIN_PATHS } from "../../proto/admin/api.ts";
import type { ConduitInfo } from "../../proto/admin/conduit_answer.ts";
import { useAsked } from "./asked.ts";
import { type Action, ActionButton } from "./confirm.tsx";
import { Ago, Fact, Facts, NodeLink, Said, State } from "./marks.tsx";
import { peerText } from "./peer_text.ts";
import { goTo, place } from "./place.ts";
import { clock, conduits } from "./server_state.ts";
import { ageText, sizeText } from "../../platform/text/quantities.ts";
import { msText, rateText } from "./units.ts";

const AGAIN_MS = 1_000;

/** Ends one conduit. */
export function killOf(conduit: ConduitInfo): Action {
  const { id, caller, target } = conduit;
  return {
    verb: "Kill",
    question: `Kill this connection to ${peerText(target)}?`,
    consequence: `Both ends see a reset, and bytes under way are lost. ` +
      `${peerText(caller)} asked for it ${
        ageText(clock.peek() - Date.parse(conduit.startedAt))
      } ago.`,
    path: `${ADMIN_PATHS.conduit}${encodeURIComponent(id)}/kill`,
    isGrave: true,
    onDone: () => {
      conduits.remove(id);
      const { name, query } = place.peek();
      if (name === id) goTo("conduits", "", Object.fromEntries(query));
    },
  };
}

/** What it waits for, as a cell shows it. */
export function waitText(waitsFor: ConduitInfo["waitsFor"]): string {
  return waitsFor === undefined || waitsFor === "nothing" ? "–" : waitsFor;
}

/** See the module description. */
export function ConduitPanel({ id }: { readonly id: string }): VNode {
  const path = ADMIN_PATHS.conduit + encodeURIComponent(id.toWellFormed());
  const asked = useAsked<ConduitInfo>(path, AGAIN_MS);
  const conduit = asked.kind === "known"
    ? asked.answer
    : conduits.items.get(id);
  return (
    <>
      <h2 class="panel-title">
        <Said text={conduit?.target ?? id} />
      </h2>
      {asked.kind === "failed" && (
        <p class="problem is-bad">{peerText(asked.message)}</p>
      )}
      {conduit && (
        <>
          <div class="panel-state">
            <State state={conduit.state} />
            <Ago at={conduit.startedAt} />
            <span class="actions">
              <ActionButton action={killOf(conduit)} />
            </span>
          </div>
          <ConduitFacts conduit={conduit} />
        </>
      )}
    </>
  );
}

function ConduitFacts({ conduit }: { readonly conduit: ConduitInfo }): VNode {
  const { from, node, forwardedTo, service } = conduit;
  return (
    <Facts>
      <Fact name="Caller">
        <Said text={conduit.caller} />
      </Fact>
      <Fact name="From">{from && <Said text={from} />}</Fact>
      <Fact name="Node">{node !== undefined && <NodeLink name={node} />}</Fact>
      <Fact name="Forwarded to">
        {forwardedTo && <Said text={forwardedTo} />}
      </Fact>
      <Fact name="Service">{service && <Said text={service} />}</Fact>
      <Fact name="Waits for">{waitText(conduit.waitsFor)}</Fact>
      <Fact name="To the target">{rateText(conduit.toTargetRate)}</Fact>
      <Fact name="From the target">{rateText(conduit.fromTargetRate)}</Fact>
      <Fact name="Sent to it">{sizeText(conduit.toTargetBytes)}</Fact>
      <Fact name="Received from it">{sizeText(conduit.fromTargetBytes)}</Fact>
      <Fact name="Queue">{knownSize(conduit.queuedBytes)}</Fact>
      <Fact name="Window">{knownSize(conduit.windowBytes)}</Fact>
      <Fact name="Round trip">{msText(conduit.roundTripMs)}</Fact>
      <Fact name="Dial took">{msText(conduit.dialMs)}</Fact>
      <Fact name="Idle">{ageText(conduit.idleMs)}</Fact>
      <Fact name="Id">
        <code>{peerText(conduit.id)}</code>
      </Fact>
    </Facts>
  );
}

function knownSize(bytes: number | undefined): string {
  return bytes === undefined ? "–" : sizeText(bytes);
}

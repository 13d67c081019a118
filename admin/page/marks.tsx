/**
 * Small parts of many views: states (a shape and a word, never a colour alone),
 * names, times, notes.
 *
 * @module
 */

import type { ComponentChildren, VNode } from "preact";
import type { Tone } from "../view/cells.ts";
import { agoText, peerText, timeText } from "./units.ts";
import { placeLink } from "./place.ts";
import { clock } from "./server_state.ts";

/** Sentences with names in them are longer than names. */
const SENTENCE_MAX = 1000;

const SHAPES: Readonly<Record<Tone, string>> = {
  good: "●",
  bad: "▲",
  warn: "◆",
  info: "◐",
  calm: "○",
};

/** A shape and a word. */
export function State(
  { tone, isShort = false, children }: {
    readonly tone: Tone;
    /** Only the shape is seen. */
    readonly isShort?: boolean;
    readonly children: ComponentChildren;
  },
): VNode {
  return (
    <span class={`state is-${tone}`}>
      <span class="shape" aria-hidden="true">{SHAPES[tone]}</span>
      <span class={isShort ? "unseen" : ""}>{children}</span>
    </span>
  );
}

/** Above the facts of one item; `problem`: its fault. */
export function PanelTitle(
  { name, problem }: {
    readonly name: string;
    readonly problem: string | undefined;
  },
): VNode {
  return (
    <>
      <h2 class="panel-title">
        <Said text={name} />
      </h2>
      {problem && (
        <p class="problem is-bad">
          <Said text={problem} />
        </p>
      )}
    </>
  );
}

/** A peer's text, isolated from its surroundings in any script. */
export function Said({ text }: { readonly text: string }): VNode {
  const shown = peerText(text);
  return <bdi title={shown}>{shown}</bdi>;
}

/** A sentence of ours, in which commands stand between backticks. */
export function Sentence({ text }: { readonly text: string }): VNode {
  const parts = peerText(text, SENTENCE_MAX).split("`");
  return (
    <bdi>
      {parts.map((part, index) =>
        index % 2 === 1 && index < parts.length - 1
          ? <code key={index}>{part}</code>
          : part
      )}
    </bdi>
  );
}

/** A name that leads to what it names. */
export function NameLink(
  { name, text = name, view = "nodes", isSkipped = false }: {
    readonly name: string;
    /** What stands there instead. */
    readonly text?: string;
    readonly view?: string;
    /** Not in the order of Tab: the arrow keys move through its row. */
    readonly isSkipped?: boolean;
  },
): VNode {
  return (
    <a
      class="name"
      href={placeLink(view, name)}
      {...(isSkipped ? { tabIndex: -1 } : {})}
    >
      <Said text={text} />
    </a>
  );
}

/** `12m ago`, and when that was. */
export function Ago({ at }: { readonly at: string | undefined }): VNode {
  if (at === undefined) return <span class="faint">–</span>;
  return (
    <time dateTime={at} title={timeText(at)}>{agoText(at, clock.value)}</time>
  );
}

/** A heading with its content. */
export function Panel(
  { title, note, children, kind = "" }: {
    readonly title: string;
    readonly note?: ComponentChildren;
    readonly children: ComponentChildren;
    readonly kind?: string;
  },
): VNode {
  const id = `panel-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
  return (
    <section class={`panel ${kind}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {note !== undefined && <div class="note">{note}</div>}
      </header>
      {children}
    </section>
  );
}

/** Shown in place of a list. */
export function Nothing({ children }: { children: ComponentChildren }): VNode {
  return <p class="nothing">{children}</p>;
}

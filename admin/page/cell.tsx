/**
 * A cell, a section and facts of `admin/view` as the page shows them: words
 * with their tone, names with their links.
 *
 * @module
 */

import type { VNode } from "preact";
import {
  type Cell,
  cellText,
  type ColumnShape,
  type Fact,
  type Note,
  type Section,
  type Table,
} from "../view/cells.ts";
import { NameLink, Panel, Said, Sentence, State } from "./marks.tsx";
import { peerText } from "./units.ts";
import { placeLink } from "./place.ts";

/** Rows of a section; the view that it leads to has all. */
const ROWS_MAX = 12;

/** Texts that most rows have in most columns: no movement, or unknown. */
const NOTHING = /^(?:-|0|0s|0 B|0 B\/s|)$/;

/** One cell. */
export function CellText(
  { cell, isSkipped = false }: {
    readonly cell: Cell;
    /** Not in the order of Tab: the arrow keys move through its row. */
    readonly isSkipped?: boolean;
  },
): VNode {
  const { text, tone, to } = typeof cell === "string"
    ? { text: cell, tone: undefined, to: undefined }
    : cell;
  if (NOTHING.test(text)) return <>{text === "" ? "" : "–"}</>;
  const said = to === undefined
    ? <Said text={text} />
    : <NameLink {...to} text={text} isSkipped={isSkipped} />;
  return tone === undefined ? said : <State tone={tone}>{said}</State>;
}

/** `RATE TO` as the page writes it: `Rate to`; `RTT` stays. */
export function titleOf(heading: string): string {
  return heading === "RTT" || heading === "ID"
    ? heading
    : heading.charAt(0) + heading.slice(1).toLowerCase();
}

/** A section with its heading. */
export function SectionPanel(
  { section }: { readonly section: Section },
): VNode {
  const { heading, summary, place } = section;
  const query: Record<string, string> = place?.state === undefined
    ? {}
    : { state: place.state };
  return (
    <Panel
      title={heading}
      note={place && <a href={placeLink(place.view, "", query)}>all</a>}
    >
      {summary !== "" && <p class="faint">{peerText(summary)}</p>}
      <SectionRows section={section} />
    </Panel>
  );
}

/** The rows of a section, and its sentences. */
export function SectionRows(
  { section, most = ROWS_MAX }: {
    readonly section: Pick<Section, "table" | "notes">;
    readonly most?: number;
  },
): VNode {
  const { table, notes = [] } = section;
  return (
    <ul class="list rows">
      {table?.rows.slice(0, most).map((row, at) => (
        <Row key={at} row={row} table={table} below={table.below?.[at] ?? ""} />
      ))}
      {notes.slice(0, most).map((note, at) => (
        <NoteRow key={`note ${at}`} note={note} />
      ))}
    </ul>
  );
}

function Row(
  { row, table: { columns }, below }: {
    readonly row: readonly Cell[];
    readonly table: Table;
    readonly below: string;
  },
): VNode {
  const cells = (part: ColumnShape["part"]) =>
    row.flatMap((cell, at) => {
      const column = columns[at]!;
      return column.part === part && !NOTHING.test(cellText(cell))
        ? [{ cell, unit: column.unit }]
        : [];
    });
  return (
    <li>
      <span class="grow">
        {cells("name").map(({ cell }, at) => <CellText key={at} cell={cell} />)}
        <div class="second">
          {cells("under").map(({ cell }, at) => (
            <CellText key={at} cell={cell} />
          ))}
          {below !== "" && <Said text={below} />}
        </div>
      </span>
      <span>
        {cells("value").map(({ cell, unit = "" }, at) => (
          <div key={at}>
            <CellText cell={cell} /> {unit}
          </div>
        ))}
      </span>
    </li>
  );
}

function NoteRow({ note }: { readonly note: Note }): VNode {
  const { text, label, node } = note;
  return (
    <li>
      <span class="grow">
        {label && (
          <State tone={label.tone}>
            <Said text={label.text} />
          </State>
        )}
        <div class={label ? "second" : ""}>
          <Sentence text={text} />
        </div>
      </span>
      {node !== undefined && <NameLink name={node} />}
    </li>
  );
}

/** Facts, one below the other. */
export function ViewFacts(
  { facts }: { readonly facts: readonly Fact[] },
): VNode {
  return (
    <dl class="facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{titleOf(name.toUpperCase())}</dt>
          <dd>
            {Array.isArray(value)
              ? <Texts texts={value} />
              : <CellText cell={value as Cell} />}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Texts({ texts }: { readonly texts: readonly string[] }): VNode {
  if (texts.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="texts">
      {texts.map((text) => (
        <li key={text}>
          <Said text={text} />
        </li>
      ))}
    </ul>
  );
}

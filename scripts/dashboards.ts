/**
 * `deploy/grafana/*.json`, from the list of panels beside this file;
 * `reference.ts` writes them.
 *
 * @module
 */

import { type Board, BOARDS, type Panel } from "./dashboard_panels.ts";

/** Whichever data source somebody picks above the panels. */
const DATASOURCE = { type: "prometheus", uid: "${datasource}" };

/** Of Grafana 10; newer ones migrate by themselves. */
const SCHEMA_VERSION = 38;

const COLUMNS = 24;
const STAT = { w: 4, h: 4 };
const GRAPH = { w: 12, h: 8 };

/** Each file's text by its place. */
export function dashboards(): ReadonlyMap<string, string> {
  return new Map(
    BOARDS.map((board) => [
      `deploy/grafana/${board.uid}.json`,
      JSON.stringify(dashboard(board), null, 2) + "\n",
    ]),
  );
}

function dashboard({ uid, title, variables, panels }: Board): unknown {
  return {
    uid,
    title,
    tags: ["tunnel"],
    editable: true,
    graphTooltip: 1,
    schemaVersion: SCHEMA_VERSION,
    timezone: "browser",
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    links: [{
      type: "dashboards",
      title: "tunnel",
      tags: ["tunnel"],
      asDropdown: true,
      icon: "external link",
      includeVars: false,
      keepTime: true,
      targetBlank: false,
      tooltip: "",
      url: "",
    }],
    templating: {
      list: [
        {
          name: "datasource",
          label: "Data source",
          type: "datasource",
          query: "prometheus",
        },
        ...variables.map(([name, query]) => ({
          name,
          type: "query",
          datasource: DATASOURCE,
          query: { query, refId: name },
          refresh: 2,
          includeAll: true,
          multi: true,
          allValue: ".*",
          sort: 1,
        })),
      ],
    },
    panels: placed(panels),
  };
}

/** Numbers first, then graphs, two in a row. */
function placed(panels: readonly Panel[]): unknown[] {
  let [x, y, rowHeight] = [0, 0, 0];
  return panels.map((panel, index) => {
    const { w, h } = panel.type === "stat" ? STAT : GRAPH;
    if (x + w > COLUMNS || h !== rowHeight && x > 0) {
      [x, y] = [0, y + rowHeight];
    }
    rowHeight = h;
    const gridPos = { x, y, w, h };
    x += w;
    return {
      id: index + 1,
      type: panel.type,
      title: panel.title,
      ...(panel.about === undefined ? {} : { description: panel.about }),
      datasource: DATASOURCE,
      gridPos,
      fieldConfig: {
        defaults: { unit: panel.unit, ...thresholds(panel) },
        overrides: [],
      },
      options: OPTIONS[panel.type],
      targets: panel.queries.map(([legend, expr], at) => ({
        refId: String.fromCharCode(65 + at),
        datasource: DATASOURCE,
        expr,
        legendFormat: legend,
        ...(panel.type === "timeseries"
          ? { range: true }
          : { instant: true, range: false }),
        ...(panel.type === "table" ? { format: "table" } : {}),
      })),
    };
  });
}

/** @param bad From this value on something is wrong. */
function thresholds({ bad }: Panel): Readonly<Record<string, unknown>> {
  if (bad === undefined) return {};
  const steps = [
    { color: "green", value: null },
    { color: "red", value: bad },
  ];
  return { thresholds: { mode: "absolute", steps } };
}

const OPTIONS = {
  stat: {
    colorMode: "value",
    graphMode: "area",
    reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
  },
  timeseries: {
    legend: { displayMode: "list", placement: "bottom", showLegend: true },
    tooltip: { mode: "multi", sort: "desc" },
  },
  table: { showHeader: true },
} as const;

// What the study varied besides designs and users: throughput and response time against each axis, and what each point does
// compared with the first one.

import type { Axis, Comparison, Estimate, Rung } from "../analysis";
import { drawBars } from "../chart/bars";
import { drawCurves } from "../chart/curves";
import type { ChartDesign } from "../chart/estimate";
import { clear, figure } from "../chart/frame";
import { swatch } from "../chart/marker";
import { select } from "../control";
import { append, html } from "../dom";
import { capitalised, interval, MISSING, ratio, users as usersText } from "../format";
import { mainType, section, type Page } from "../page";
import { table } from "../table";
import { designLook } from "../theme";
import { quantity, unitName } from "../unit";
import { vocabulary } from "../vocabulary";

/** The variants that differ on one axis alone: one line of a chart. `variants[point]`. */
interface Line extends ChartDesign {
  variants: (number | undefined)[];
}

interface Measure {
  title: string;
  /** What the title does not say. */
  note?: string;
  unit: string;
  /** Where the values end by nature. */
  limit?: number;
  pick: (rung: Rung) => Estimate | null | undefined;
}

/** The section; none of a study without axes. */
export function axes(page: Page): HTMLElement | null {
  const all = page.analysis.axes;
  // Only what every variant was measured with can be compared along an axis.
  const measured = page.analysis.designs.map((_, design) => design)
    .filter((design) => page.ladder.some((users) => page.rung(design, users)));
  const ladder = page.ladder.filter((users) => measured.every((design) => page.rung(design, users)));
  const top = ladder[ladder.length - 1];
  if (all.length === 0 || top === undefined) return null;
  const body = html("div", {});
  const draw = (users: number) => {
    clear(body);
    all.forEach((axis, index) => append(body, ofAxis(page, axis, index, users)));
  };
  draw(top);
  const names = all.map((axis) => axis.name).join(" and ");
  return section(
    "axes",
    all.length === 1 ? `By ${names}` : "By what was varied",
    `What the study asks about: ${names}. The other points are compared with the first one.`,
    ladder.length > 1
      ? html("div", { class: "controls" },
        select(capitalised(vocabulary().many), ladder.map((value) => ({ value, label: usersText(value) })), top, draw))
      : null,
    body,
  );
}

function linesOf(page: Page, index: number): Line[] {
  const lines = new Map<string, Line>();
  const { designs, axes: all } = page.analysis;
  const several = new Set(designs.map((design) => design.of)).size > 1;
  designs.forEach((design, variant) => {
    const others = design.coordinates.filter((_, axis) => axis !== index);
    const key = [design.of, ...others].join(" ");
    const beside = all.flatMap((axis, other) =>
      (other === index ? [] : [axis.points[design.coordinates[other] ?? 0]?.phrase ?? ""]));
    const title = [...(several || beside.length === 0 ? [design.of_title] : []), ...beside].join(", ");
    const line = lines.get(key) ?? { title, look: designLook(lines.size), variants: [] };
    line.variants[design.coordinates[index] ?? 0] = variant;
    lines.set(key, line);
  });
  return [...lines.values()];
}

function measures(page: Page): Measure[] {
  const { rate, rate_unit, is_job } = page.analysis.workload;
  const timed = page.analysis.rungs.flatMap((rung) => rung.latencies.filter((row) => row.p95.value !== null));
  const type = mainType(page, [...new Set(timed.map((row) => row.transaction))]);
  const p95 = (rung: Rung) => rung.latencies.find((row) => row.transaction === type)?.p95;
  return [
    { title: capitalised(rate), unit: rate_unit, pick: (rung) => rung.metrics["headline"] },
    { title: "Duration", unit: "s", pick: (rung) => rung.metrics["job_s"] },
    { title: "CPU use of the server", note: "of the processors that it may use", unit: "share", limit: 1,
      pick: (rung) => rung.metrics["server_cpu_use"] },
    { title: "CPU of the server", unit: "cores", pick: (rung) => rung.metrics["server_cores"] },
    ...(type === undefined || is_job ? [] : [{ title: "p95 response time", unit: "ns", pick: p95 }]),
  ];
}

function ofAxis(page: Page, axis: Axis, index: number, users: number): (HTMLElement | null)[] {
  const lines = linesOf(page, index);
  const charts = measures(page).flatMap((measure) => {
    const estimates = axis.points.map((_, point) => lines.map((line) => {
      const variant = line.variants[point];
      const rung = variant === undefined ? undefined : page.rung(variant, users);
      return (rung && measure.pick(rung)) ?? null;
    }));
    if (!estimates.some((row) => row.some((estimate) => estimate?.value != null))) return [];
    return [chart(axis, lines, measure, estimates, users)];
  });
  const legend = lines.length > 1
    ? html("ul", { class: "legend" }, lines.map((line) => html("li", {}, swatch(line.look), line.title)))
    : null;
  return [
    page.analysis.axes.length > 1 ? html("h3", {}, capitalised(axis.name)) : null,
    legend,
    html("div", { class: "chart-pair" }, charts),
    numbers(page, axis, lines, users),
  ];
}

function chart(axis: Axis, lines: Line[], measure: Measure, estimates: (Estimate | null)[][], users: number): HTMLElement {
  const numbers = axis.points.map((point) => point.number);
  // A line between points says that there is something between them.
  const isNumeric = numbers.every((number) => number !== null && number > 0) && new Set(numbers).size === numbers.length;
  const label = (number: number) => axis.points[numbers.indexOf(number)]?.label ?? "";
  return figure({
    title: measure.title,
    note: [measure.note ?? unitName(measure.unit), usersText(users)].filter(Boolean).join(", "),
    description: `${measure.title} against ${axis.name} at ${usersText(users)}; the table below has the numbers.`,
    draw: (width) =>
      (isNumeric
        ? drawCurves(
          {
            designs: lines,
            rungs: numbers.map((number) => number ?? 0),
            estimates,
            unit: measure.unit,
            vertical: "from zero",
            limit: measure.limit,
            horizontal: { title: axis.name, write: label },
          },
          width,
        )
        : drawBars(
          {
            designs: lines, groups: axis.points.map((point) => point.label), estimates, unit: measure.unit, axisTitle: axis.name,
            limit: measure.limit,
          },
          width,
        )),
  });
}

function numbers(page: Page, axis: Axis, lines: Line[], users: number): HTMLElement {
  const { rate_unit, unit } = page.analysis.workload;
  const rows = lines.flatMap((line) => axis.points.map((point, place) => {
    const variant = line.variants[place];
    const first = line.variants[0];
    const headline = variant === undefined ? undefined : page.rung(variant, users)?.metrics["headline"];
    const against = page.analysis.comparisons.find((one) =>
      one.a === first && one.b === variant && one.users === users && one.metric === "headline");
    const write = (value: number | null) => quantity(value, rate_unit);
    return {
      cells: [
        point.label,
        ...(lines.length > 1 ? [line.title] : []),
        headline ? write(headline.value) : MISSING,
        headline ? interval(headline.low, headline.high, write) : MISSING,
        place === 0 ? ratio(1) : against ? ratio(against.ratio) : MISSING,
        against ? interval(against.low, against.high, ratio) : MISSING,
        against?.published ? ratio(against.published) : MISSING,
        against ? conclusion(against) : "",
      ],
    };
  }));
  return table(
    [
      { heading: capitalised(axis.name) },
      ...(lines.length > 1 ? [{ heading: "Design", design: true }] : []),
      { heading: unit, numeric: true }, { heading: "95 % interval", numeric: true },
      { heading: "Of the first", numeric: true }, { heading: "95 % interval", numeric: true },
      { heading: "Published", numeric: true }, { heading: "Conclusion" },
    ],
    rows,
    `${capitalised(axis.name)} at ${usersText(users)}`,
  );
}

function conclusion(comparison: Comparison): string {
  const texts: Record<Comparison["outcome"], string> = {
    better: "better", worse: "worse", equivalent: "the same within 5 %", undecided: "no difference shown",
    suggested: "not confirmed", single: "one pair: no interval", missing: MISSING,
  };
  return texts[comparison.outcome];
}

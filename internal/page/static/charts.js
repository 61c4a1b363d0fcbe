// Small charts of the last two minutes, as SVG.
import { el } from "./table.js";

const W = 240, H = 44, SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes) {
  const e = document.createElementNS(SVG, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  return e;
}

// tile makes a figure with a title, a value, a note and, if lines are named, a
// chart. Its update takes {value, note, bad, series: [[numbers or null]…], unit}.
export function tile(parent, title, lines) {
  const caption = el("figcaption", "", title);
  const value = el("span", "value", "–"), note = el("span", "note", " ");
  const figure = el("figure", "", caption, value, note);
  parent.append(figure);
  if (!lines) return (v) => say(value, note, v);
  const legend = el("span", "", ...(lines.length > 1 ? lines.flatMap((l) => [el("span", "key " + l.kind), l.name + " "]) : []));
  caption.append(legend);
  const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
  picture.append(svg("path", { class: "base", d: `M0 ${H}H${W}` }));
  const area = svg("path", { class: "area" });
  picture.append(area);
  const paths = lines.map((l) => svg("path", { class: l.kind }));
  picture.append(...paths);
  figure.append(picture);
  return (v) => {
    say(value, note, v);
    const most = Math.max(1e-9, ...v.series.flat().filter((n) => n !== null));
    v.series.forEach((s, i) => paths[i].setAttribute("d", line(s, most)));
    area.setAttribute("d", lines.length === 1 || v.area ? closed(v.series[0], most) : "");
    picture.setAttribute("aria-label", `${title}, the last two minutes: ${v.value} now, ${v.peak(most < 1e-6 ? 0 : most)} at most`);
  };
}

function say(value, note, v) {
  if (value.textContent !== v.value) value.textContent = v.value;
  const text = v.note || " ";
  if (note.textContent !== text) note.textContent = text;
  note.classList.toggle("bad", Boolean(v.bad));
}

const SECONDS = 120; // the width of a chart

const x = (i, n) => ((SECONDS - n + i) * W) / (SECONDS - 1);
const y = (v, most) => H - 1 - ((H - 3) * v) / most;

// line draws what there is; a second without a value is a gap.
function line(series, most) {
  let d = "", pen = false;
  series.forEach((v, i) => {
    if (v === null) { pen = false; return; }
    const at = `${x(i, series.length).toFixed(1)} ${y(v, most).toFixed(1)}`;
    d += pen ? `L${at}` : `M${at}h.01`; // a dot, if nothing follows
    pen = true;
  });
  return d;
}

function closed(series, most) {
  const n = series.length;
  if (n < 2) return "";
  return `M${x(0, n).toFixed(1)} ${H}` + series.map((v, i) => `L${x(i, n).toFixed(1)} ${y(v ?? 0, most).toFixed(1)}`).join("") + `L${W} ${H}Z`;
}

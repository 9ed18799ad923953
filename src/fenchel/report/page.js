"use strict";
// Charts of the traces: one panel against passes, one against seconds; drag zooms, double-click resets.
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#777777"];
const W = 480, H = 300, LEFT = 62, RIGHT = 10, TOP = 10, BOTTOM = 36;
const traces = JSON.parse(document.getElementById("traces").textContent);

function make(name, attributes, parent, text) {
  const svg = ["svg", "g", "path", "line", "rect", "circle", "text", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

// Of each chart the lines of a run: where its numbers are, their name, a name to show, dashes.
const LINES = {
  optimum: [["rows", "optimum", "distance to the optimum", ""]],
  distance: [["rows", "distance", "distance", ""], ["steps", "relative_gap", "estimate", "1 4"]],
  bounds: [["rows", "primal", "objective", ""], ["rows", "dual", "bound", "5 4"]],
  validation: [["rows", "validation", "validation", ""]],
};

function curves(kind, x) {
  return traces.flatMap((trace, k) => LINES[kind].map(([where, column, shown, dash]) => {
    const table = where === "steps" ? trace.steps : trace;
    return {
      name: trace.name, column: shown, dash, colour: COLOURS[k % COLOURS.length], marked: where === "rows",
      points: table[x].map((value, row) => [value, table[column][row]])
        .filter(([a, b]) => a !== null && b !== null && (!["distance", "optimum"].includes(kind) || b > 0)),
    };
  }));
}

function extent(all, axis, log) {
  const values = all.flatMap(curve => curve.points.map(point => point[axis]));
  let low = Math.min(...values), high = Math.max(...values);
  if (axis === 0) low = 0;
  if (log) return low === high ? [low / 2, high * 2] : [low / 1.3, high * 1.3];
  const room = (high - low || Math.abs(high) || 1) * 0.04;
  return [axis === 0 ? 0 : low - room, high + room];
}

// The objective falls from far above: show where primal and dual meet first, everything after a double-click.
function nearTheEnd(all) {
  const last = all.flatMap(curve => curve.points.slice(Math.floor(curve.points.length / 3)).map(point => point[1]));
  const low = Math.min(...last), high = Math.max(...last), room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low - room, high + room];
}

function ticks([low, high], log) {
  if (log) {
    const first = Math.ceil(Math.log10(low)), last = Math.floor(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / 7)), marks = [];
    for (let power = first; power <= last; power += step) marks.push(10 ** power);
    return marks.length > 1 ? marks : [low, high];
  }
  const raw = (high - low) / 5, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * unit).find(size => size >= raw), marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high; mark += step) marks.push(mark);
  return marks;
}

const short = number => Math.abs(number) >= 1e5 || (number !== 0 && Math.abs(number) < 1e-3)
  ? number.toExponential(0) : String(Number(number.toPrecision(4)));

function panel(parent, kind, x, logY) {
  const all = curves(kind, x).filter(curve => curve.points.length);
  if (!all.length) return;
  const whole = { x: extent(all, 0, false), y: extent(all, 1, logY) };
  let view = kind === "bounds" ? { x: whole.x, y: nearTheEnd(all) } : whole;
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${kind} against ${x}; the numbers are in the tables below` }, parent);
  const tip = document.querySelector(".tip") || make("div", { class: "tip", hidden: "" }, document.body);
  const height = number => logY ? Math.log10(number) : number;
  const px = value => LEFT + (value - view.x[0]) / (view.x[1] - view.x[0]) * (W - LEFT - RIGHT);
  const py = value => H - BOTTOM - (height(value) - height(view.y[0])) / (height(view.y[1]) - height(view.y[0])) * (H - TOP - BOTTOM);
  const back = (sx, sy) => {
    const share = (H - BOTTOM - sy) / (H - TOP - BOTTOM), low = height(view.y[0]), y = low + share * (height(view.y[1]) - low);
    return [view.x[0] + (sx - LEFT) / (W - LEFT - RIGHT) * (view.x[1] - view.x[0]), logY ? 10 ** y : y];
  };
  const place = event => {
    const box = svg.getBoundingClientRect();
    return [(event.clientX - box.left) * W / box.width, (event.clientY - box.top) * H / box.height];
  };
  const clip = `clip${Math.random().toString(36).slice(2)}`;

  function draw() {
    svg.replaceChildren();
    const defs = document.createElementNS("http://www.w3.org/2000/svg", "clipPath");
    defs.id = clip;
    svg.append(defs);
    make("rect", { x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, defs);
    for (const mark of ticks(view.y, logY)) {
      make("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: py(mark), y2: py(mark) }, svg);
      make("text", { x: LEFT - 6, y: py(mark) + 4, "text-anchor": "end" }, svg, short(mark));
    }
    for (const mark of ticks(view.x, false)) make("text", { x: px(mark), y: H - BOTTOM + 16, "text-anchor": "middle" }, svg, short(mark));
    make("text", { x: (LEFT + W - RIGHT) / 2, y: H - 4, "text-anchor": "middle" }, svg, x);
    make("rect", { class: "frame", x: LEFT, y: TOP, width: W - LEFT - RIGHT, height: H - TOP - BOTTOM }, svg);
    const inside = make("g", { "clip-path": `url(#${clip})` }, svg);
    for (const curve of all) {
      const path = curve.points.map(([a, b], k) => `${k ? "L" : "M"}${px(a).toFixed(2)} ${py(b).toFixed(2)}`).join("");
      make("path", { class: "curve", d: path, stroke: curve.colour, "stroke-dasharray": curve.dash }, inside);
      if (curve.marked && curve.points.length <= 60) for (const [a, b] of curve.points) make("circle", { cx: px(a), cy: py(b), r: 2.4, fill: curve.colour }, inside);
    }
  }

  function nearest([sx, sy]) {
    let best = null, distance = 30;
    for (const curve of all) for (const point of curve.points) {
      const far = Math.hypot(px(point[0]) - sx, py(point[1]) - sy);
      if (far < distance) [best, distance] = [{ curve, point }, far];
    }
    return best;
  }

  let start = null, box = null;
  svg.addEventListener("pointerdown", event => {
    start = place(event);
    svg.setPointerCapture(event.pointerId);
    box = make("rect", { class: "box" }, svg);
  });
  svg.addEventListener("pointermove", event => {
    const here = place(event);
    if (start) {
      for (const [name, value] of Object.entries({
        x: Math.min(start[0], here[0]), y: Math.min(start[1], here[1]),
        width: Math.abs(start[0] - here[0]), height: Math.abs(start[1] - here[1]),
      })) box.setAttribute(name, value);
      return;
    }
    const found = nearest(here);
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = `${found.curve.name}, ${found.curve.column}\n${short(found.point[0])} ${x}: ${Number(found.point[1].toPrecision(6))}`;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${event.clientY + 12}px`;
  });
  svg.addEventListener("pointerup", event => {
    const from = start, to = place(event);
    start = null;
    if (from && Math.abs(from[0] - to[0]) > 8 && Math.abs(from[1] - to[1]) > 8) {
      const [a, b] = [back(...from), back(...to)];
      view = { x: [Math.min(a[0], b[0]), Math.max(a[0], b[0])], y: [Math.min(a[1], b[1]), Math.max(a[1], b[1])] };
    }
    draw();
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  svg.addEventListener("dblclick", () => { view = whole; draw(); });
  draw();
}

for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const legend = make("div", { class: "legend" }, figure), panels = make("div", { class: "panels" }, figure);
  traces.forEach((trace, k) => {
    const entry = make("span", {}, legend);
    make("i", { style: `border-color:${COLOURS[k % COLOURS.length]}` }, entry);
    entry.append(trace.name);
  });
  for (const x of ["passes", "seconds"]) panel(panels, figure.dataset.chart, x, figure.dataset.log === "y");
}

for (const field of document.querySelectorAll("input[type=search]")) {
  const rows = field.parentElement.querySelectorAll("tbody tr");
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}

// The explorer: a map over two factors, and the images at the combination that
// is selected there. explorer.py describes the data.
(() => {
"use strict";
const root = document.getElementById("explorer");
const data = JSON.parse(
  root.querySelector('script[type="application/json"]').textContent);
const sprites = root.querySelectorAll("img.sprite");
const part = (name) => root.querySelector(`[data-part="${name}"]`);
const canvasOf = (role) => root.querySelector(`canvas[data-role="${role}"]`);
const base = canvasOf("base"), overlay = canvasOf("map");

// Viridis, and blue to red: both can be told apart by the color-blind.
const RISING = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c",
  "#28ae80", "#5ec962", "#addc30", "#fde725"].map(parseColor);
const SIGNED = ["#2166ac", "#67a9cf", "#f7f7f7", "#ef8a62", "#b2182b"]
  .map(parseColor);
const OUTLINE = "#ff00ff";
const SHOWN_UNITS = 4;
const FLAT = 1e-4;  // of the largest variance: constant but for rounding
const TILES = {
  truth: "true image", output: "output of the model",
  difference: "output − true image",
  nearest: "nearest training image",
  superposition: "superposition of training outputs",
  additive: "additive model, no network",
};
const VECTORS = {
  truth: "embedding", output: "composed of parts",
  difference: "composed − embedding", nearest: "nearest training embedding",
};
const NOTES = {
  superposition: "Superposition: for each factor, the model's mean output at "
    + "the training combinations with the same value; then the best weighted "
    + "sum. ",
  additive: "Additive model: the best sum of effects of single factors, a "
    + "least-squares fit of one image for each factor value to the training "
    + "images. ",
};
const MAX_LINE = 32; // images
const SHIFT = 1000; // a factor that differs counts more than levels of it

const state = {
  run: 0, combination: 0, kept: 0, epoch: 0, axes: [0, 1], held: [],
  values: "relative_mse", stage: 0, unit: 0, ellipses: false, line: [],
};
const run = () => data.runs[state.run];
const group = () => data.groups[run().group];
const count = () => group().ood.length;
const isTrained = () => state.epoch === run().epochs.length;
const nameOf = (role) => (run().items && VECTORS[role]) || TILES[role];
const peers = () => data.runs.filter((other) => other.group === run().group);

// ---- numbers

function parseColor(text) {
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}

function mix(colors, share) {
  const place = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
  const i = Math.min(Math.floor(place), colors.length - 2);
  return colors[i].map((c, k) =>
    Math.round(c + (place - i) * (colors[i + 1][k] - c)));
}

const decoded = new Map();
function decode(text) {
  if (!decoded.has(text)) {
    decoded.set(text, Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
  }
  return decoded.get(text);
}

function format(value) {
  if (value === null || value === undefined) return "–";
  const isTiny = value !== 0 && Math.abs(value) < 1e-4; // as %.3g has it
  const text = isTiny ? value.toExponential(2) : Number(value.toPrecision(3));
  return String(text).replaceAll("-", "−");
}

// Numbers of all combinations that the map shows, with a label and limits.
function chooseValues() {
  const stage = run().stages[state.stage];
  if (state.values === "unit" && stage && stage.units.length) {
    const unit = Math.min(state.unit, stage.units.length - 1);
    const [low, high] = stage.ranges[unit];
    const label = `unit ${stage.units[unit]} of ${stage.name}`;
    return {label, low, high, values: readUnit(stage, unit)};
  }
  if (state.values === "log_volume" && stage && stage.log_volume) {
    const label = `log-volume of ${stage.name}`;
    return {label, ...findLimits([stage.log_volume], false),
      values: stage.log_volume};
  }
  const score = run().scores.find((s) => s.name === state.values)
    || run().scores[0];
  const same = peers().flatMap((other) =>
    other.scores.filter((s) => s.name === score.name).map((s) => s.values));
  const early = score.name === "relative_mse" && !isTrained();
  return {
    label: score.label, ...findLimits(same, true),
    values: early ? run().epochs[state.epoch].errors : score.values,
  };
}

function readUnit(stage, unit) {
  const [low, high] = stage.ranges[unit], n = count();
  return Array.from(decode(stage.maps).subarray(unit * n, (unit + 1) * n),
    (byte) => low + byte / 255 * (high - low));
}

// From 0 (or the least value below it) to the 98th percentile.
function findLimits(lists, fromZero) {
  const sorted = Float64Array.from(
    lists.flat().filter((v) => v !== null)).sort();
  if (!sorted.length) return {low: 0, high: 1};
  const high = fromZero ? sorted[Math.floor(0.98 * (sorted.length - 1))]
    : sorted[sorted.length - 1];
  const low = fromZero ? Math.min(0, sorted[0]) : sorted[0];
  const isExceeded = sorted[sorted.length - 1] > high;
  return {low, high: high > low ? high : low + 1, isExceeded};
}

function makeScale({low, high}) {
  if (low < 0 && high > 0) {
    const most = Math.max(-low, high);
    return (value) => mix(SIGNED, 0.5 + value / most / 2);
  }
  return (value) => mix(RISING, (value - low) / (high - low || 1));
}

// ---- the plane of two factors

// True if images move down as the factor of the vertical axis grows: so does
// the map then, whose rows count from below.
const isDown = () => group().factors[state.axes[1]]?.vertical < 0;

function getRow(level) {
  const {factors} = group(), b = state.axes[1];
  return isDown() ? factors[b].levels.length - 1 - level : level;
}

// The combination of every cell: the one whose other factors are as they are
// held, or else the one that differs least from that.
function makePlane() {
  const {index, factors} = group(), [a, b] = state.axes;
  const nx = factors[a].levels.length;
  const ny = b === null ? 1 : factors[b].levels.length;
  const cells = new Int32Array(nx * ny).fill(-1);
  const costs = new Float64Array(nx * ny).fill(Infinity);
  const others = listOthers();
  for (let i = 0; i < count(); i++) {
    const cell = index[a][i] + nx * (b === null ? 0 : getRow(index[b][i]));
    let cost = 0;
    for (const f of others) {
      const steps = Math.abs(index[f][i] - state.held[f]);
      cost += steps ? SHIFT + steps : 0;
    }
    if (cost < costs[cell]) {
      costs[cell] = cost;
      cells[cell] = i;
    }
  }
  return {nx, ny, cells, costs};
}

function listOthers() {
  const all = group().factors.map((_, f) => f);
  return all.filter((f) => !state.axes.includes(f));
}

function getPlace(combination) {
  const {index} = group(), [a, b] = state.axes;
  return [index[a][combination],
    b === null ? 0 : getRow(index[b][combination])];
}

function hold(combination) {
  state.held = group().index.map((column) => column[combination]);
}

let plane, frame;

function layOut() {
  const width = Math.max(240, Math.min(430, root.clientWidth - 8));
  const frame = {left: 62, top: 8, width};
  const {nx, ny} = plane, room = width - frame.left - 8;
  frame.w = Math.min(48, room / nx);
  frame.h = Math.min(48, 340 / ny);
  if (Math.max(nx, ny) < 2 * Math.min(nx, ny)) {
    frame.w = frame.h = Math.min(frame.w, frame.h);
  }
  if (frame.w > 2) frame.w = Math.floor(frame.w);
  if (frame.h > 2) frame.h = Math.floor(frame.h);
  frame.bottom = frame.top + frame.h * ny;
  frame.height = frame.bottom + 90;
  return frame;
}

function prepare(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = frame.width * ratio;
  canvas.height = frame.height * ratio;
  canvas.style.width = `${frame.width}px`;
  canvas.style.height = `${frame.height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, frame.width, frame.height);
  pen.font = "12px system-ui, sans-serif";
  return pen;
}

const corner = (x, y) =>
  [frame.left + x * frame.w, frame.bottom - (y + 1) * frame.h];

function drawMap() {
  plane = makePlane();
  frame = layOut();
  const pen = prepare(base), style = getComputedStyle(root);
  const ink = style.getPropertyValue("--ink");
  const chosen = chooseValues(), scale = makeScale(chosen);
  plane.cells.forEach((i, cell) => {
    const value = i < 0 ? null : chosen.values[i];
    const [x, y] = corner(cell % plane.nx, Math.floor(cell / plane.nx));
    const inset = plane.costs[cell] ? 0.2 : 0;
    pen.fillStyle = value === null ? style.getPropertyValue("--none")
      : `rgb(${scale(value)})`;
    pen.fillRect(x + inset * frame.w, y + inset * frame.h,
      frame.w * (1 - 2 * inset), frame.h * (1 - 2 * inset));
  });
  if (state.ellipses) drawEllipses(pen);
  const stage = run().stages[state.stage];
  part("ellipses").hidden = !state.ellipses || !stage || !stage.lengths;
  if (!part("ellipses").hidden) {
    part("ellipses").textContent = "Ellipses of the metric tensor: long in "
      + "the direction in which the activations change most, with an area in "
      + "proportion to the volume. An axis across a cell is a change of "
      + `${format(stage.longest)} per level, the largest of ${stage.name}.`;
  }
  outline(pen);
  drawAxes(pen, ink);
  drawBar(pen, ink, chosen, scale);
  drawMarks();
}

// The border of the held-out region, on the edges of cells.
function outline(pen) {
  const {nx, ny, cells} = plane, {ood} = group();
  const isOut = (x, y) => x >= 0 && y >= 0 && x < nx && y < ny
    && cells[x + nx * y] >= 0 && ood[cells[x + nx * y]] === 1;
  pen.beginPath();
  for (let y = 0; y <= ny; y++) {
    for (let x = 0; x <= nx; x++) {
      const [left, top] = corner(x, y);
      if (isOut(x, y) !== isOut(x - 1, y)) {
        pen.moveTo(left, top);
        pen.lineTo(left, top + frame.h);
      }
      if (isOut(x, y) !== isOut(x, y - 1)) {
        pen.moveTo(left, top + frame.h);
        pen.lineTo(left + frame.w, top + frame.h);
      }
    }
  }
  pen.strokeStyle = OUTLINE;
  pen.lineWidth = 2;
  pen.stroke();
}

// Ellipses of the metric tensor: half axes are square roots of its
// eigenvalues, the change of the activations per level.
function drawEllipses(pen) {
  const stage = run().stages[state.stage], {factors} = group();
  const ordered = factors.map((_, f) => f).filter((f) => factors[f].ordered);
  const [a, b] = state.axes.map((f) => ordered.indexOf(f));
  if (!stage || !stage.lengths || a < 0 || b < 0) return;
  const lengths = decode(stage.lengths), k = ordered.length;
  const [first, second] = [Math.min(a, b), Math.max(a, b)];
  const pair = first * k - first * (first + 1) / 2 + second - first - 1;
  const cosines = decode(stage.cosines[pair]);
  const every = Math.ceil(16 / Math.min(frame.w, frame.h));
  const radius = 0.48 * every * Math.min(frame.w, frame.h) / 255;
  pen.strokeStyle = "#fff";
  pen.fillStyle = "rgba(0, 0, 0, 0.45)";
  pen.lineWidth = 1.2;
  for (let y = every >> 1; y < plane.ny; y += every) {
    for (let x = every >> 1; x < plane.nx; x += every) {
      const i = plane.cells[x + plane.nx * y];
      if (i < 0) continue;
      const la = lengths[i * k + a], lb = lengths[i * k + b];
      const cross = la * lb * (cosines[i] / 127 - 1) * (isDown() ? -1 : 1);
      const mean = (la * la + lb * lb) / 2;
      const half = Math.hypot((la * la - lb * lb) / 2, cross);
      const [left, top] = corner(x, y);
      pen.beginPath();
      pen.ellipse(left + frame.w / 2, top + frame.h / 2,
        Math.sqrt(mean + half) * radius,
        Math.sqrt(Math.max(mean - half, 0)) * radius,
        -Math.atan2(2 * cross, la * la - lb * lb) / 2, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
  }
}

function drawAxes(pen, ink) {
  const {factors} = group(), [a, b] = state.axes;
  pen.fillStyle = ink;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const wide = Math.max(...factors[a].levels.map((t) => shorten(t).length));
  const every = Math.ceil((7 * wide + 8) / frame.w);
  for (let x = 0; x < plane.nx; x += every) {
    const [left] = corner(x, 0);
    pen.fillText(shorten(factors[a].levels[x]), left + frame.w / 2,
      frame.bottom + 4);
  }
  const middle = frame.left + frame.w * plane.nx / 2;
  pen.fillText(factors[a].label, middle, frame.bottom + 20);
  if (b === null) return;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (let y = 0; y < plane.ny; y += Math.ceil(14 / frame.h)) {
    const [, top] = corner(0, y);
    pen.fillText(shorten(factors[b].levels[getRow(y)]), frame.left - 4,
      top + frame.h / 2);
  }
  pen.save();
  pen.translate(8, (frame.top + frame.bottom) / 2);
  pen.rotate(-Math.PI / 2);
  pen.textAlign = "center";
  pen.fillText(factors[b].label, 0, 0);
  pen.restore();
}

const shorten = (text) => text.length > 6 ? `${text.slice(0, 5)}…` : text;

function drawBar(pen, ink, chosen, scale) {
  const top = frame.bottom + 44, width = frame.width - frame.left - 8;
  for (let x = 0; x < width; x++) {
    const value = chosen.low + x / width * (chosen.high - chosen.low);
    pen.fillStyle = `rgb(${scale(value)})`;
    pen.fillRect(frame.left + x, top, 1.5, 10);
  }
  pen.fillStyle = ink;
  pen.textBaseline = "top";
  // The label has a line of its own, since it may be long.
  const most = (chosen.isExceeded ? "≥ " : "") + format(chosen.high);
  [["left", format(chosen.low), 0, 14], ["right", most, width, 14],
    ["center", chosen.label, width / 2, 28],
  ].forEach(([side, text, x, y]) => {
    pen.textAlign = side;
    pen.fillText(text, frame.left + x, top + y, width);
  });
}

function drawMarks() {
  const pen = prepare(overlay);
  const center = (i) => {
    const [left, top] = corner(...getPlace(i));
    return [left + frame.w / 2, top + frame.h / 2];
  };
  if (state.line.length > 1) {
    for (const [color, width] of [["#000", 4], ["#fff", 2]]) {
      pen.strokeStyle = color;
      pen.lineWidth = width;
      pen.beginPath();
      state.line.forEach((i) => pen.lineTo(...center(i)));
      pen.stroke();
    }
  }
  const [left, top] = corner(...getPlace(state.combination));
  const w = Math.max(frame.w, 5), h = Math.max(frame.h, 5);
  for (const [color, width] of [["#000", 4], ["#fff", 2]]) {
    pen.strokeStyle = color;
    pen.lineWidth = width;
    pen.strokeRect(left + (frame.w - w) / 2, top + (frame.h - h) / 2, w, h);
  }
}

// ---- the images

function paint(canvas, from, tile, x = 0, y = 0) {
  const [w, h] = from.size;
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  pen.drawImage(sprites[from.sprite], tile % from.columns * w,
    Math.floor(tile / from.columns) * h, w, h, x, y, w, h);
}

// From where the image of a role is cut, and its tiles.
function findImages(role) {
  if (role === "output" && !isTrained()) {
    const early = run().epochs[state.epoch];
    return [early, early.output];
  }
  const from = role === "output" || role === "superposition" ? run() : group();
  return [from, from.images[role === "nearest" ? "nearest_id" : role]];
}

// The signed square root shows small differences. A pixel has the channel
// that differs most.
function paintDifference() {
  const [w, h] = group().size, canvas = canvasOf("difference");
  const [truth, output] = ["truth", "output"].map((role) =>
    canvasOf(role).getContext("2d").getImageData(0, 0, w, h).data);
  const picture = new ImageData(w, h);
  for (let p = 0; p < truth.length; p += 4) {
    let most = 0;
    for (let c = p; c < p + 3; c++) {
      const found = output[c] - truth[c];
      if (Math.abs(found) > Math.abs(most)) most = found;
    }
    const share = Math.sign(most) * Math.sqrt(Math.abs(most) / 255);
    picture.data.set([...mix(SIGNED, 0.5 + share / 2), 255], p);
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

function drawImages() {
  const i = state.combination, where = describe(i);
  for (const role of Object.keys(TILES)) {
    const canvas = canvasOf(role);
    if (!canvas) continue;
    if (role === "difference") paintDifference();
    else {
      const [from, tiles] = findImages(role);
      paint(canvas, from, tiles[i]);
    }
    canvas.setAttribute("aria-label", `${nameOf(role)} at ${where}`);
  }
  root.querySelectorAll("canvas[data-run]").forEach((canvas) => {
    const other = data.runs[canvas.dataset.run];
    paint(canvas, other, other.images.output[i]);
  });
  drawTexts(i);
}

function describe(i) {
  const {factors, index} = group();
  return factors.map((f, k) =>
    `${f.name} ${f.levels[index[k][i]]}`).join(", ");
}

function describeChosen(i) {
  const epoch = isTrained() ? "" : `, epoch ${run().epochs[state.epoch].epoch}`;
  const items = run().items;
  const near = items ? `; nearest to the output: ${describe(items[i])}` : "";
  return `${describe(i)}${epoch}${near}`;
}

function drawTexts(i) {
  part("chosen").textContent = describeChosen(i);
  part("marks").textContent = describeMarks(i);
  drawScores(i);
}

function drawScores(i) {
  const others = Object.entries(group().errors).map(([name, errors]) =>
    [nameOf(name === "additive" ? name : "nearest"), errors[i]]);
  const head = ["", ...peers().map((r) => r.name)];
  const error = run().scores.find((s) => s.name === "relative_mse");
  // Of a network in training, no other score is known.
  const early = isTrained() ? null : run().epochs[state.epoch].errors;
  const read = (other, name) => {
    if (!early || other !== run()) {
      return other.scores.find((s) => s.name === name)?.values[i];
    }
    return name === "relative_mse" ? early[i] : null;
  };
  const rows = run().scores.map(({name, label}) => [label,
    ...peers().map((other) => read(other, name))])
    .filter(([, ...values]) => values.some((v) => (v ?? null) !== null));
  const span = {colSpan: peers().length};
  part("scores").replaceChildren(make("table", {},
    make("tr", {}, ...head.map((textContent) =>
      make("th", {textContent, scope: "col"}))),
    ...rows.map(([label, ...values]) => make("tr", {},
      make("th", {textContent: label, scope: "row"}),
      ...values.map((value) => make("td", {textContent: format(value)})))),
    ...others.map(([name, value]) => make("tr", {},
      make("th", {textContent: `${error.label}: ${name}`, scope: "row"}),
      make("td", {textContent: format(value), ...span})))));
}

function describeMarks(i) {
  const {ood, test, certified: {orders, order}} = group();
  const range = isTrained() && run().ranges[i];
  const cut = !range ? "" : range.includes(null)
    ? " The output is not finite."
    : ` Pixels of the output are ${format(range[0])} to ${format(range[1])};`
    + " the picture clips them to 0 and 1.";
  if (!ood[i]) {
    return `${test[i] ? "In distribution, not trained on." : "Trained on."}`
      + cut;
  }
  if (group().control) {
    return `In the region, which this control was trained on.${cut}`;
  }
  if (!orders.length) return `Held out.${cut}`;
  const how = order[i] === 1 ? "the factors act separately"
    : `at most ${order[i]} factors interact`;
  return (order[i]
    ? `Held out; identifiable if ${how}${
      run().items ? "." : ", which these images need not do."}`
    : "Held out; not identifiable: training does not determine this "
    + "combination even if the factors act separately.") + cut;
}

// Room for the longest texts, or the images below would jump.
function reserveTexts() {
  for (const [name, describe] of [["chosen", describeChosen],
    ["marks", describeMarks]]) {
    const box = part(name), texts = group().ood.map((_, i) => describe(i));
    box.style.minHeight = "0";
    box.textContent = texts.reduce((one, other) =>
      other.length > one.length ? other : one);
    box.style.minHeight = `${box.getBoundingClientRect().height}px`;
    box.textContent = texts[state.combination];
  }
}

function drawLine() {
  const strip = part("line"), line = state.line;
  strip.hidden = line.length < 2;
  if (strip.hidden) return;
  const [width, height] = group().size;
  const [a, b] = state.axes, {factors, index} = group();
  const moved = [a, b].filter((f) => f !== null && index[f][line[0]]
    !== index[f][line[line.length - 1]]);
  const film = strip.querySelector(".film");
  film.replaceChildren(...line.map((i) => {
    const images = ["truth", "output"].map((role) => {
      const [from, tiles] = findImages(role);
      const canvas = make("canvas", {width, height});
      paint(canvas, from, tiles[i]);
      return canvas;
    });
    const levels = moved.map((f) => factors[f].levels[index[f][i]]);
    const text = levels.map(shorten).join(", ");
    return make("div", {className: group().ood[i] ? "out" : ""},
      ...images, make("span", {textContent: text}));
  }));
  const names = moved.map((f) => factors[f].label).join(", ");
  const text = `True images above outputs, from ${describe(line[0])} to `
    + `${describe(line[line.length - 1])}; below: ${names}. `
    + "Held-out images have a magenta frame.";
  strip.querySelector("p").textContent = text;
  film.setAttribute("aria-label", text);
}

function drawUnits() {
  const stage = run().stages[state.stage], box = part("units");
  box.hidden = !stage || !stage.units.length;
  if (box.hidden) return;
  const spread = stage.units.map((_, unit) => {
    const values = readUnit(stage, unit);
    const shown = Array.from(plane.cells).filter((i) => i >= 0)
      .map((i) => values[i]);
    const mean = shown.reduce((sum, v) => sum + v, 0) / shown.length;
    return shown.reduce((sum, v) => sum + (v - mean) ** 2, 0);
  });
  const most = Math.max(...spread);
  const order = stage.units.map((_, unit) => unit)
    .filter((unit) => spread[unit] > FLAT * most)
    .sort((one, other) => spread[other] - spread[one])
    .slice(0, SHOWN_UNITS);
  box.querySelector("p").textContent = order.length
    ? `Units of ${stage.name} (of those stored here) that vary most on this `
      + "map, each from its least to its largest activation. Click one to "
      + "enlarge it."
    : `No stored unit of ${stage.name} varies on this map.`;
  const buttons = order.map((unit) => {
    const number = stage.units[unit];
    const canvas = make("canvas", {width: plane.nx, height: plane.ny});
    const values = readUnit(stage, unit), pen = canvas.getContext("2d");
    const [low, high] = stage.ranges[unit], scale = makeScale({low, high});
    plane.cells.forEach((i, cell) => {
      if (i < 0) return;
      pen.fillStyle = `rgb(${scale(values[i])})`;
      const y = plane.ny - 1 - Math.floor(cell / plane.nx);
      pen.fillRect(cell % plane.nx, y, 1, 1);
    });
    const pressed = state.values === "unit" && state.unit === unit;
    const button = make("button", {type: "button", onclick: () => {
      state.values = "unit";
      state.unit = unit;
      refresh();
    }}, canvas, `unit ${number}`);
    button.setAttribute("aria-pressed", pressed);
    return make("figure", {}, button);
  });
  box.querySelector("div").replaceChildren(...buttons);
}

// ---- controls

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function addChoice(label, names, value, change) {
  if (names.length < 2) return;
  const select = make("select", {ariaLabel: label, onchange: () => {
    change(select.selectedIndex);
    refresh();
  }}, ...names.map((name) => make("option", {textContent: name})));
  select.selectedIndex = value;
  part("controls").append(make("label", {}, label, select));
}

function addSlider(label, names, value, change) {
  if (names.length < 2) return;
  const text = make("span", {textContent: `${label}: ${names[value]}`});
  const input = make("input", {type: "range", min: 0, max: names.length - 1,
    value, ariaLabel: label, oninput: () => {
      text.textContent = `${label}: ${names[input.value]}`;
      input.setAttribute("aria-valuetext", names[input.value]);
      change(Number(input.value));
      drawAll();
    }});
  input.setAttribute("aria-valuetext", names[value]);
  part("controls").append(make("label", {}, text, input));
}

function buildControls() {
  part("controls").replaceChildren();
  const {factors} = group(), stages = run().stages.map((s) => s.name);
  addChoice("run", data.runs.map((r) => r.name), state.run, (i) =>
    turnTo(i));
  const kinds = [...run().scores];
  if (stages.length) {
    if (run().stages.some((s) => s.log_volume)) {
      kinds.push({name: "log_volume", label: "log-volume of the stage"});
    }
    kinds.push({name: "unit", label: "a unit of the stage"});
  }
  addChoice("map", kinds.map((k) => k.label),
    Math.max(0, kinds.findIndex((k) => k.name === state.values)),
    (i) => { state.values = kinds[i].name; });
  [0, 1].forEach((axis) => addChoice("xy"[axis],
    factors.length < 3 ? [] : factors.map((f) => f.name),
    state.axes[axis], (f) => {
      if (f === state.axes[1 - axis]) state.axes.reverse();
      else state.axes[axis] = f;
      state.line = [];
    }));
  addChoice("stage", stages, state.stage, (i) => {
    state.stage = i;
    state.unit = 0;
  });
  if (run().stages.some((s) => s.lengths)
    && state.axes.every((f) => f !== null && factors[f].ordered)) {
    const box = make("input", {type: "checkbox", checked: state.ellipses,
      onchange: () => {
        state.ellipses = box.checked;
        drawMap();
      }});
    const label = make("label", {className: "check"}, box,
      "metric ellipses of the stage");
    label.title = "Metric tensor: an ellipse is long in the direction in "
      + "which the activations change most; its area is proportional to the "
      + "volume. The longest axis of all is drawn as wide as a cell.";
    part("controls").append(label);
  }
  listOthers().forEach((f) => addSlider(factors[f].name, factors[f].levels,
    state.held[f], (level) => {
      state.held[f] = level;
      plane = makePlane();
      const [x, y] = getPlace(state.combination);
      const found = plane.cells[x + plane.nx * y];
      if (found >= 0) state.combination = state.kept = found;
      state.line = [];
    }));
  addSlider("epoch", [...run().epochs.map((e) => String(e.epoch)), "trained"],
    state.epoch, (i) => { state.epoch = i; });
}

function buildTiles() {
  const {images, size: [width, height]} = group();
  const has = {nearest: images.nearest_id, additive: images.additive,
    superposition: run().images.superposition};
  const roles = Object.keys(TILES).filter((r) => !(r in has) || has[r]);
  const draw = (role, extra, ...text) => {
    const canvas = make("canvas", {width, height});
    canvas.dataset.role = role;
    Object.assign(canvas.dataset, extra);
    canvas.setAttribute("role", "img");
    return [canvas, ...text];
  };
  part("tiles").replaceChildren(...roles.map((role) => make("figure", {},
    ...draw(role, {}), make("figcaption", {textContent: nameOf(role)}))));
  const same = peers().length > 1 ? peers() : [];
  part("others").replaceChildren(...same.map((other) => {
    const number = data.runs.indexOf(other);
    const button = make("button", {type: "button", onclick: () => {
      turnTo(number);
      refresh();
    }}, ...draw("run", {run: number}, other.name));
    button.setAttribute("aria-pressed", number === state.run);
    return make("figure", {}, button);
  }));
  const shown = count(), all = group().total;
  const many = shown < all ? `${shown.toLocaleString("en")} of `
    + `${all.toLocaleString("en")} combinations are on this page, at evenly `
    + "spaced levels. " : "";
  part("scale").textContent = "Images show pixels from 0 to 1, the difference "
    + "from −1 (blue) to 1 (red) by its signed square root.";
  const down = isDown() ? `On the map, ${group().factors[state.axes[1]].name} `
    + "grows downward, as in the images. " : "";
  part("note").textContent = `${many}${down}`
    + `${group().control ? "Scored as held out" : "Held out"}: `
    + `${group().region} (outlined). `
    + `Errors are divided by the error of ${group().reference}. `
    + "Difference: the signed square root, so that small differences show; "
    + "red is too bright, blue too dark. For a color image, each pixel has the "
    + "channel that differs most. "
    + roles.map((role) => NOTES[role] || "").join("")
    + (listOthers().length ? "A small square on the map has another level of a "
    + "factor that the map does not show." : "");
}

// Another run, at the same levels if its data have them.
function turnTo(number) {
  const before = group(), values = before.factors.map((f, k) =>
    f.levels[before.index[k][state.combination]]);
  const names = before.factors.map((f) => f.name);
  state.run = number;
  state.epoch = run().epochs.length;
  state.stage = Math.max(0, Math.min(state.stage, run().stages.length - 1));
  state.unit = 0;
  if (group() === before) return;
  state.line = [];
  const {factors, index} = group();
  const wanted = factors.map((f) =>
    f.levels.indexOf(values[names.indexOf(f.name)]));
  let found = 0;
  for (let i = 0; i < count(); i++) {
    if (wanted.every((level, k) => index[k][i] === level)) found = i;
  }
  start(found);
}

function start(combination) {
  state.combination = state.kept = combination;
  hold(combination);
  chooseAxes();
}

// Two factors whose map has combinations of both kinds, held out and not;
// ordered ones first, then those with the most of both. A factor that moves
// images up or down is vertical.
function chooseAxes() {
  const {factors, ood} = group();
  state.axes = [0, null];
  let best = [];
  for (let g = 1; g < factors.length; g++) {
    for (let f = 0; f < g; f++) {
      const before = state.axes;
      state.axes = [f, g];
      const shown = makePlane(), kinds = [0, 0];
      shown.cells.forEach((i, cell) => {
        if (shown.costs[cell] === 0) kinds[ood[i]] += 1;
      });
      const rank = [Math.min(...kinds) > 0, factors[f].ordered
        + factors[g].ordered, Math.min(...kinds), kinds[0] + kinds[1]];
      const first = rank.findIndex((value, k) => value !== best[k]);
      if (first >= 0 && !(rank[first] < best[first])) best = rank;
      else state.axes = before;
    }
  }
  const [a, b] = state.axes;
  if (factors[a].vertical && !factors[b]?.vertical && b !== null) {
    state.axes = [b, a];
  }
}

// ---- choosing

function show(combination, isKept) {
  if (combination < 0) return;
  state.combination = combination;
  if (isKept) {
    state.kept = combination;
    announce();
  }
  drawMarks();
  drawImages();
}

function announce() {
  part("live").textContent =
    `${describe(state.combination)}. ${describeMarks(state.combination)}`;
}

function findCell(event) {
  const box = overlay.getBoundingClientRect();
  const x = Math.floor((event.clientX - box.left - frame.left) / frame.w);
  const y = Math.floor((frame.bottom - event.clientY + box.top) / frame.h);
  const {nx, ny, cells} = plane;
  return x >= 0 && y >= 0 && x < nx && y < ny ? cells[x + nx * y] : -1;
}

function setLine(from, to) {
  const [x0, y0] = getPlace(from), [x1, y1] = getPlace(to);
  const most = Math.max(Math.abs(x1 - x0), Math.abs(y1 - y0));
  const steps = Math.min(most, MAX_LINE - 1), found = new Set();
  for (let k = 0; k <= steps; k++) {
    const share = steps ? k / steps : 0;
    const x = Math.round(x0 + share * (x1 - x0));
    const y = Math.round(y0 + share * (y1 - y0));
    const i = plane.cells[x + plane.nx * y];
    if (i >= 0) found.add(i);
  }
  state.line = [...found];
  drawMarks();
  drawLine();
}

let dragged = -1;
overlay.addEventListener("pointerdown", (event) => {
  const found = findCell(event);
  if (found < 0) return;
  overlay.focus({preventScroll: true});
  if (event.shiftKey) setLine(state.kept, found);
  else {
    dragged = found;
    overlay.setPointerCapture(event.pointerId);
  }
  show(found, true);
});
overlay.addEventListener("pointermove", (event) => {
  const found = findCell(event);
  if (found < 0 || found === state.combination) return;
  show(found, dragged >= 0);
  if (dragged >= 0) setLine(dragged, found);
});
overlay.addEventListener("pointerup", () => { dragged = -1; });
overlay.addEventListener("pointercancel", () => { dragged = -1; });
overlay.addEventListener("pointerleave", () => {
  if (dragged < 0) show(state.kept, false);
});

const MOVES = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1],
  ArrowDown: [0, -1]};
let anchor = 0;
root.addEventListener("keydown", (event) => {
  if (["SELECT", "INPUT"].includes(event.target.tagName)) return;
  if (event.key === "Escape") {
    state.line = [];
    drawMarks();
    drawLine();
  }
  if (event.key === "Shift" && state.line.length < 2) {
    anchor = state.combination;
  }
  const move = MOVES[event.key];
  if (!move || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const {nx, ny, cells} = plane;
  let [x, y] = getPlace(state.combination);
  do { // over cells that are empty
    x += move[0];
    y += move[1];
  } while (x >= 0 && y >= 0 && x < nx && y < ny && cells[x + nx * y] < 0);
  if (x < 0 || y < 0 || x >= nx || y >= ny) return;
  show(cells[x + nx * y], true);
  if (event.shiftKey) setLine(anchor, state.combination);
});

// ---- all of it

function drawAll() {
  drawMap();
  reserveTexts();
  drawImages();
  drawUnits();
  drawLine();
  const names = state.axes.filter((f) => f !== null).map((f) =>
    group().factors[f].name).join(" and ");
  overlay.setAttribute("aria-label",
    `Map of ${chooseValues().label} over ${names}; arrow keys move`);
}

function refresh() {
  buildControls();
  buildTiles();
  drawAll();
  announce();
}

function tell(i) {
  const {factors, index, ood} = group();
  const list = (key) => Object.fromEntries(factors.map((f, k) =>
    [f.name, f[key][index[k][i]]]));
  return {...list("values"), factors: list("values"), levels: list("levels"),
    ood: ood[i] === 1};
}

// Interface for other programs; indices begin at 0.
window.tfcomp = {
  runs: data.runs.map((r) => r.name),
  get combinations() {
    return group().ood.map((_, i) => tell(i));
  },
  get selected() {
    return {...tell(state.combination), run: state.run,
      combination: state.combination,
      epoch: isTrained() ? null : run().epochs[state.epoch].epoch};
  },
  select(number, combination) {
    if (!data.runs[number]) {
      throw new RangeError(`run must be from 0 to ${data.runs.length - 1}`);
    }
    const size = data.groups[data.runs[number].group].ood.length;
    if (!(Number.isInteger(combination) && combination >= 0
      && combination < size)) {
      throw new RangeError(`combination must be from 0 to ${size - 1}`);
    }
    if (number !== state.run) turnTo(number);
    state.combination = state.kept = combination;
    hold(combination);
    refresh();
    return this.selected;
  },
};

state.epoch = run().epochs.length;
const heldOut = group().ood.flatMap((isOut, i) => isOut ? [i] : []);
start(heldOut[heldOut.length >> 1] || 0);
refresh();
// Images may come after the script; the rest when sizes or colors change.
sprites.forEach((image) => image.addEventListener("load", drawImages));
window.addEventListener("load", drawAll);
window.addEventListener("resize", () => {
  drawMap();
  reserveTexts();
});
window.matchMedia("(prefers-color-scheme: dark)")
  .addEventListener("change", drawMap);
})();

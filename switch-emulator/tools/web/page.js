// The picture of a fabric. What the fabric says comes as events, each a whole view (live/status/fabric_view.h); names in it are text, never markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
// Okabe and Ito 2008: told apart by the colour-blind, too.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
const HOSTS_IN_A_ROW = 16, HOST_GAP = 34, SWITCH_GAP = 16, FLOOR = 112, HOST_ROW = 38, MARGIN = 26, LETTER = 7.4;
const HISTORY_SECONDS = 180, MOST_DOTS = 160, DOT_PIXELS_A_SECOND = 130;
const token = location.hash.slice(1);
const calm = matchMedia("(prefers-reduced-motion: reduce)");

const byId = (id) => document.getElementById(id);

function svg(name, attributes = {}, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function html(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function scaled(value, base, units) {
  let unit = 0;
  while (value >= base && unit + 1 < units.length) { value /= base; ++unit; }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toPrecision(3)} ${units[unit]}`;
}
const rate = (bps) => scaled(bps, 1000, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const count = (n) => n.toLocaleString("en");
const percent = (p) => `${Number((100 * p).toPrecision(3))} %`;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const lacks = (behind) => behind.late_ns > 0 ? `is late for ${(behind.late_ns / 1e9).toFixed(3)} s` : `lacks ${plural(behind.packets, "packet")}`;

// ---- The map. Laid out again only when switches or cables are others than before; then kept up to date in place.

class FabricMap {
  constructor(view) {
    this.key = FabricMap.keyOf(view);
    this.layOut(view);
    this.root = svg("svg", { viewBox: `0 0 ${this.width} ${this.height}`, role: "img" });
    const layers = ["cables", "trees", "dots", "touch", "nodes"].map((name) => this.root.appendChild(svg("g", { class: name })));
    [this.cableLayer, this.treeLayer, this.dotLayer, this.touchLayer, this.nodeLayer] = layers;
    this.cables = view.cables.map((cable, i) => this.addCable(cable, i));
    this.hosts = view.cables.map((cable, i) => (cable.to < 0 ? this.addHost(cable, i) : null));
    view.switches.forEach((one, s) => this.addSwitch(one, s));
    const drawing = byId("drawing");
    drawing.style.setProperty("--needs", `${Math.min(this.width * 0.62, 1400)}px`);
    drawing.replaceChildren(this.root);
    this.dots = new Dots(this);
  }

  static keyOf(view) {
    return JSON.stringify([view.switches, view.cables.map((c) => [c.from, c.to, c.name])]);
  }

  // Switches with hosts stand above them, in their order; the others are spread over the width.
  layOut(view) {
    this.at = view.switches.map(() => ({ x: 0, y: 0 }));
    this.ends = view.cables.map(() => ({ x: 0, y: 0 }));
    const top = Math.max(1, ...view.switches.map((s) => s.floor));
    const ground = MARGIN + top * FLOOR;
    let x = MARGIN, rows = 0;
    view.switches.forEach((one, s) => {
      this.at[s].y = ground - one.floor * FLOOR + 12;
      if (one.floor !== 1) return;
      const own = view.cables.flatMap((c, i) => (c.from === s && c.to < 0 ? [i] : []));
      const inRow = Math.min(own.length, HOSTS_IN_A_ROW);
      const wide = Math.max(this.boxWidth(one.name), inRow * HOST_GAP);
      this.at[s].x = x + wide / 2;
      own.forEach((c, n) => {
        this.ends[c] = { x: this.at[s].x + ((n % HOSTS_IN_A_ROW) - (inRow - 1) / 2) * HOST_GAP,
                         y: ground - FLOOR / 4 + Math.floor(n / HOSTS_IN_A_ROW) * HOST_ROW };
      });
      rows = Math.max(rows, Math.ceil(own.length / HOSTS_IN_A_ROW));
      x += wide + SWITCH_GAP;
    });
    this.width = Math.max(x - SWITCH_GAP + MARGIN, 360);
    for (let floor = 2; floor <= top; ++floor) {
      const here = view.switches.flatMap((one, s) => (one.floor === floor ? [s] : []));
      this.width = Math.max(this.width, here.reduce((w, s) => w + this.boxWidth(view.switches[s].name) + SWITCH_GAP, 2 * MARGIN));
      here.forEach((s, i) => { this.at[s].x = (this.width * (i + 0.5)) / here.length; });
    }
    this.height = ground + rows * HOST_ROW + 6;
    view.cables.forEach((c, i) => { if (c.to >= 0) this.ends[i] = this.at[c.to]; });
  }
  boxWidth(name) { return 18 + LETTER * name.length; }

  lineOf(cable, i, shift = 0) {
    const a = this.at[cable.from], b = this.ends[i];
    return { x1: a.x + shift, y1: a.y, x2: b.x + shift, y2: b.y };
  }
  addCable(cable, i) {
    const line = this.cableLayer.appendChild(svg("line", this.lineOf(cable, i)));
    const touch = this.touchLayer.appendChild(svg("line", { ...this.lineOf(cable, i), class: "touch" }));
    if (cable.to >= 0) this.makeButton(touch, i);
    else touch.addEventListener("click", () => panel.open(i));
    return { line, touch };
  }
  addHost(cable, i) {
    const p = this.ends[i];
    const circle = this.nodeLayer.appendChild(svg("circle", { cx: p.x, cy: p.y, r: 8, class: "host" }));
    this.nodeLayer.appendChild(svg("text", { x: p.x, y: p.y + 22 }, cable.name));
    this.makeButton(circle, i);
    return circle;
  }
  addSwitch(one, s) {
    const p = this.at[s], wide = this.boxWidth(one.name);
    this.nodeLayer.append(svg("rect", { x: p.x - wide / 2, y: p.y - 12, width: wide, height: 24, rx: 5, class: "switch" }),
                          svg("text", { x: p.x, y: p.y + 4 }, one.name));
  }
  makeButton(node, i) {
    node.setAttribute("tabindex", 0);
    node.setAttribute("role", "button");
    node.addEventListener("click", () => panel.open(i));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      panel.open(i);
    });
  }

  update(view) {
    const late = new Set(view.groups.flatMap((g) => (g.behind.packets > 0 ? g.behind.names : [])));
    const sources = new Set(view.groups.filter((g) => g.bps > 0).map((g) => g.source));
    view.cables.forEach((cable, i) => {
      const { line, touch } = this.cables[i];
      const flow = Math.max(cable.in_bps, cable.out_bps);
      line.setAttribute("class", `cable ${cable.state}`);
      line.setAttribute("stroke-width", (1 + 1.1 * Math.log10(1 + flow / 1e6)).toFixed(2));
      const label = `${cable.link}, ${cable.state}, ${rate(cable.in_bps)} in, ${rate(cable.out_bps)} out`;
      (this.hosts[i] ?? touch).setAttribute("aria-label", label);
      if (this.hosts[i]) {
        this.hosts[i].setAttribute("class", ["host", cable.host.attached && "attached", late.has(cable.name) && "late",
                                             sources.has(cable.name) && "source"].filter(Boolean).join(" "));
      }
    });
    this.updateTrees(view);
    this.root.setAttribute("aria-label", `${plural(view.switches.length, "switch")}, ${plural(view.groups.length, "group")}`);
    this.dots.update(view);
  }
  updateTrees(view) {
    const key = JSON.stringify(view.groups.map((g) => [g.id, g.cables]));
    if (key === this.treeKey) return;
    this.treeKey = key;
    const beside = Math.min(view.groups.length, COLOURS.length) - 1;
    this.treeLayer.replaceChildren(...view.groups.flatMap((group, g) => group.cables.map((i) =>
      svg("line", { ...this.lineOf(view.cables[i], i, 3.5 * (g % COLOURS.length) - 1.75 * beside),
                    stroke: COLOURS[g % COLOURS.length], "stroke-width": 3, "stroke-opacity": 0.75 }))));
  }
}

// ---- What flows: dots with the data, squares against it; as many as the rate's magnitude, at one speed.

class Dots {
  constructor(map) {
    this.map = map;
    this.all = [];
    this.last = performance.now();
    const step = (now) => {
      if (map !== fabricMap) return;
      this.move((now - this.last) / 1000);
      this.last = now;
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }
  update(view) {
    const wanted = calm.matches || document.hidden ? [] : this.wantedBy(view);
    const key = JSON.stringify(wanted.map((w) => [w.cable, w.inward, w.data, w.colour]));
    if (key === this.key) return;
    this.key = key;
    const layer = this.map.dotLayer;
    this.all = wanted.map((w) => {
      const line = this.map.lineOf(view.cables[w.cable], w.cable);
      const [from, to] = w.inward ? [[line.x2, line.y2], [line.x1, line.y1]] : [[line.x1, line.y1], [line.x2, line.y2]];
      const node = w.data ? svg("circle", { r: 3.4, fill: w.colour }) : svg("rect", { width: 4, height: 4, x: -2, y: -2, fill: "none", stroke: w.colour });
      return { node, from, to, length: Math.hypot(to[0] - from[0], to[1] - from[1]), place: w.place };
    });
    layer.replaceChildren(...this.all.map((dot) => dot.node));
    this.move(0);
  }
  wantedBy(view) {
    const wanted = [];
    view.groups.forEach((group, g) => {
      if (group.bps <= 0) return;
      const colour = COLOURS[g % COLOURS.length];
      for (const cable of group.cables) {
        const c = view.cables[cable];
        const flow = Math.max(c.in_bps, c.out_bps);
        if (c.state === "cut" || flow <= 0) continue;
        const dots = Math.max(1, Math.min(4, Math.round(Math.log10(flow) - 5)));
        const inward = c.in_bps > c.out_bps;
        for (let n = 0; n < dots; ++n) wanted.push({ cable, inward, data: true, colour, place: n / dots });
        wanted.push({ cable, inward: !inward, data: false, colour, place: 0.5 });
      }
    });
    const keep = Math.ceil(wanted.length / MOST_DOTS);
    return wanted.filter((_, i) => i % keep === 0);
  }
  move(seconds) {
    for (const dot of this.all) {
      dot.place = (dot.place + (seconds * DOT_PIXELS_A_SECOND) / Math.max(dot.length, 1)) % 1;
      const x = dot.from[0] + (dot.to[0] - dot.from[0]) * dot.place, y = dot.from[1] + (dot.to[1] - dot.from[1]) * dot.place;
      dot.node.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    }
  }
}

// ---- The column beside it.

const history = [];

function drawChart(view) {
  const now = performance.now() / 1000;
  history.push({ at: now, sent: view.sent_bps, delivered: view.delivered_bps });
  while (history[0].at < now - HISTORY_SECONDS) history.shift();
  const most = Math.max(1e6, ...history.map((h) => Math.max(h.sent, h.delivered)));
  const x = (at) => 360 - ((now - at) / HISTORY_SECONDS) * 360, y = (bps) => 122 - (bps / most) * 104;
  const line = (which, colour) => svg("polyline", { fill: "none", stroke: `var(--${colour})`, "stroke-width": 2, "vector-effect": "non-scaling-stroke",
    points: history.map((h) => `${x(h.at).toFixed(1)},${y(h[which]).toFixed(1)}`).join(" ") });
  const chart = svg("svg", { viewBox: "0 0 360 130", preserveAspectRatio: "none", role: "img",
                             "aria-label": `sent ${rate(view.sent_bps)}, delivered ${rate(view.delivered_bps)}` });
  chart.append(svg("line", { x1: 0, x2: 360, y1: 122, y2: 122, stroke: "var(--line)" }),
               svg("line", { x1: 0, x2: 360, y1: 18, y2: 18, stroke: "var(--line)" }),
               line("delivered", "delivered"), line("sent", "sent"), svg("text", { x: 2, y: 14, class: "axis" }, rate(most)));
  byId("chart").replaceChildren(chart);
}

function groupItem(group, g) {
  const behind = group.failure ? `has failed: ${group.failure}`
               : group.behind.packets > 0 ? `${group.behind.names.join(", ")} ${lacks(group.behind)}` : "no member lags";
  const next = group.next_source ? `; ${group.next_source} waits to send` : "";
  const bar = html("span", { class: "bar" });
  bar.style.background = COLOURS[g % COLOURS.length];
  return html("li", {}, bar, html("span", {}, group.source ? `from ${group.source}` : "no source has sent yet"), html("span", {}, rate(group.bps)),
              html("span", { class: "note" }, `${group.id}, ${plural(group.members, "member")}, led by ${group.leader}: ${behind}${next}`));
}

const amount = (c) => ({ bytes, us: (n) => scaled(n, 1000, ["us", "ms", "s"]) }[c.unit] ?? count)(c.total);

function counterRow(c) {
  return html("tr", {}, html("th", { scope: "row" }, c.name, html("small", {}, c.help)), html("td", {}, amount(c)),
              html("td", {}, c.per_second > 0 ? `${scaled(c.per_second, 1000, ["", "k", "M"])}/s` : ""));
}

function drawColumn(view) {
  const groups = view.groups.map(groupItem);
  byId("groups").replaceChildren(...(groups.length > 0 ? groups : [html("li", { class: "empty" }, "none: no program has set one up")]));
  const drops = view.counters.filter((c) => c.is_drop).map(counterRow);
  byId("drops").replaceChildren(...(drops.length > 0 ? drops : [html("tr", {}, html("th", { class: "empty" }, "nothing was dropped"))]));
  byId("counters").replaceChildren(...view.counters.filter((c) => !c.is_drop).map(counterRow));
}

function drawHeader(view) {
  const hosts = view.cables.filter((c) => c.to < 0);
  const attached = hosts.filter((c) => c.host.attached).length;
  const times = view.sent_bps > 1e5 ? `, ${(view.delivered_bps / view.sent_bps).toFixed(1)} copies of each byte` : "";
  byId("summary").textContent = `${attached} of ${plural(hosts.length, "host")} in use, ${plural(view.switches.length, "switch").replace("switchs", "switches")}; ` +
    `sent ${rate(view.sent_bps)}, delivered ${rate(view.delivered_bps)}${times}`;
  const late = view.groups.filter((g) => g.failure || (g.behind.packets > 0 && g.bps === 0));
  byId("lagging").textContent = late.length === 0 ? "" :
    late[0].failure ? `Group ${late[0].id} has failed: ${late[0].failure}.` :
    `Group ${late[0].id} is stalled: all wait for ${late[0].behind.names.join(", ")}, which ${lacks(late[0].behind)}.`;
}

// ---- One cable or host: what it carries, and what may be done to it.

const panel = {
  shown: -1,
  open(i) {
    this.shown = i;
    byId("panel-error").textContent = "";
    this.update();
    byId("panel").showModal();
  },
  update() {
    const cable = latest?.cables[this.shown];
    if (!cable) return;
    const facts = [["state", cable.state], ["loss", percent(cable.loss)], ["to the switch", rate(cable.in_bps)], ["from the switch", rate(cable.out_bps)],
                   ["payload so far", bytes(cable.payload_bytes)]];
    if (cable.host) facts.push(["address", cable.host.address], ["process", cable.host.pid > 0 ? `${cable.host.pid}` : "none"]);
    byId("panel-title").textContent = cable.host ? `Host ${cable.name}` : `Trunk ${cable.link}`;
    byId("panel-facts").replaceChildren(...facts.flatMap(([name, value]) => [html("dt", {}, name), html("dd", {}, value)]));
    const key = JSON.stringify([this.shown, cable.state, cable.loss, cable.host?.pid, latest.control]);
    if (key === this.key) return;
    this.key = key;
    byId("panel-actions").replaceChildren(...(latest.control ? this.actions(cable) : []));
  },
  actions(cable) {
    const cut = cable.state === "cut";
    const list = [cut ? ["Mend the link", false, "link", { link: cable.link, up: true }]
                      : ["Cut the link", true, "link", { link: cable.link, up: false }]];
    list.push(cable.loss > 0 ? ["Lose nothing", false, "link", { link: cable.link, loss: 0 }] : ["Lose 1 %", true, "link", { link: cable.link, loss: 0.01 }]);
    if (cable.host?.pid > 0) list.push([`Kill process ${cable.host.pid}`, true, "kill", { host: cable.name, pid: cable.host.pid }]);
    return list.map(([label, risky, path, body]) => this.button(label, risky, path, body));
  },
  // What breaks something asks again, in the button's place.
  button(label, risky, path, body) {
    const button = html("button", risky ? { class: "risky", type: "button" } : { type: "button" }, label);
    let sure = !risky;
    button.addEventListener("click", async () => {
      if (!sure) {
        sure = true;
        button.textContent = `${label}: sure?`;
        setTimeout(() => { sure = false; button.textContent = label; }, 4000);
        return;
      }
      byId("panel-error").textContent = await post(path, body);
    });
    return button;
  },
};

async function post(path, body) {
  try {
    const answer = await fetch(`${path}?token=${encodeURIComponent(token)}`,
                               { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    return answer.ok ? "" : await answer.text();
  } catch {
    return "The server does not answer.";
  }
}

// ---- Events.

let fabricMap = null, latest = null;

function setState(text, lost) {
  byId("state").textContent = text;
  byId("state").className = lost ? "pill lost" : "pill";
}

function show(view) {
  if (view.error) {
    setState("no fabric", true);
    byId("summary").textContent = view.error;
    return;
  }
  latest = view;
  setState("live", false);
  if (fabricMap?.key !== FabricMap.keyOf(view)) fabricMap = new FabricMap(view);
  fabricMap.update(view);
  drawHeader(view);
  drawColumn(view);
  drawChart(view);
  if (byId("panel").open) panel.update();
}

const events = new EventSource(`events?token=${encodeURIComponent(token)}`);
events.onmessage = (event) => show(JSON.parse(event.data));
events.onerror = () => {
  setState("no server", true);
  if (events.readyState === EventSource.CLOSED) {
    byId("summary").textContent = "The server refused: open the address that cepheusctl web printed, with all that is behind the #.";
  }
};

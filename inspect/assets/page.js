"use strict";
// All texts come into the document as text (textContent), never as HTML: peers have chosen some.

const views = [["ids", "Identifiers"], ["loops", "Loops"], ["memory", "Memory"], ["listeners", "Listeners"], ["devices", "Devices"],
  ["flight", "Flight recorder"]];
// The columns of identifiers: the important ones come first, and fit into 1,280 pixels. Optional ones
// are left out while no row has a value. The field that the table is sorted by is always a column.
const idColumns = ["id", "state", "trouble", "in_state_seconds", "peer", "queued_messages", "waits_for_seconds", "sent_a_second",
  "received_a_second", "credits_send_messages", "unacked_messages", "unfreed_messages", "credit_wait_seconds", "identity", "waiting",
  "local", "loop", "device", "wire", "mailbox_messages", "delivered_messages", "sent_messages", "received_messages"];
const optional = ["identity", "waiting", "device", "wire"];
const units = { seconds: duration, bytes: bytes };
const kept = 300; // samples of each counter
const main = document.getElementById("main");

let about = { sections: [], actions: false, interval_seconds: 1 };
let shown = null;      // what the present view draws: {update(data)}
let stream = null;     // its events
let route = null;      // {view, id, query}
let selected = null;   // the key of the row that j and k have chosen
let retry = 0;
const samples = new Map(); // by identifier, or "" for the program: counters of the last minutes

// --- small things

function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k === "class") e.className = v;
    else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

function svg(name, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  return e;
}

// put sets the text of an element, if it is another: what changes nothing is not laid out again.
function put(e, text) {
  const t = e.firstChild;
  if (t && t === e.lastChild && t.nodeType === Node.TEXT_NODE) {
    if (t.data !== text) t.data = text;
  } else if (t || text) {
    e.textContent = text;
  }
}

function dress(e, classes) {
  if (e.className !== classes) e.className = classes;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 }), decimal = new Intl.NumberFormat("en", { maximumFractionDigits: 1 }); // dear to make

function duration(s) {
  if (s < 0) return "unknown";
  if (s === 0) return "0";
  if (s < 1e-3) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  if (s < 60) return s.toFixed(1) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

function bytes(n) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return (unit === "B" || n % 1 === 0 && n < 10 ? n : n.toFixed(1)) + " " + unit;
    n /= 1024;
  }
}

// show is a value as text, by the unit at the end of its name.
function show(name, value) {
  if (value === undefined || value === null || value === "") return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (name === "id") return String(value);
  const unit = units[name.slice(name.lastIndexOf("_") + 1)];
  return unit ? unit(value) : (Math.abs(value) < 100 ? decimal : whole).format(value);
}

function label(name) {
  return name.replace(/_a_second$/, "/s").replace(/_(seconds|bytes|messages)$/, "").replaceAll("_", " ");
}

// longLabel also tells sent messages from sent bytes.
function longLabel(name) {
  return label(name) + (/_(bytes|messages)$/.exec(name) || [""])[0].replace("_", " ");
}

// --- where we are: #/view?query, #/ids/ID, #/sections/NAME

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/");
  const r = { view: parts[0] || "ids", id: decoded(parts.slice(1).join("/")), query: new URLSearchParams(query || "") };
  if (r.view === "ids" && r.id) r.view = "id";
  if (!["id", "sections", "actions"].includes(r.view) && !views.some(([v]) => v === r.view)) r.view = "ids";
  return r;
}

// decoded is a part of an address, or what somebody has typed in its place.
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function go(view, id, query) {
  const q = query && query.toString();
  location.hash = "#/" + view + (id ? "/" + encodeURIComponent(id) : "") + (q ? "?" + q : "");
}

// ask changes the query of the identifiers' table; the page is the first one again.
function ask(changes) {
  const q = new URLSearchParams(route.query);
  q.delete("page");
  for (const [k, v] of Object.entries(changes)) {
    if (v === "" || v === null) q.delete(k);
    else q.set(k, v);
  }
  go(route.view, "", q);
}

// sorting is the order of the identifiers: those in trouble first, unless the query has another one.
function sorting() {
  return { sort: route.query.get("sort") || "trouble", order: route.query.get("order") || (route.query.has("sort") ? "asc" : "desc") };
}

// control keeps an input or a select, and a field of the query, the same.
function control(element, name, usual = "") {
  const chosen = element.matches("select");
  let timer = 0;
  element.addEventListener(chosen ? "change" : "input", () => {
    clearTimeout(timer);
    const value = () => element.value.trim() === usual ? "" : element.value.trim();
    if (chosen) ask({ [name]: value() });
    else timer = setTimeout(() => element.isConnected && ask({ [name]: value() }), 200); // not in another view
  });
  return { element, asked() { if (chosen || document.activeElement !== element) element.value = route.query.get(name) || usual; } };
}

// choice are the options of a select; none is the text of "".
function choice(values, none = "") {
  return values.map(v => el("option", { value: v }, v || none));
}

function sizes() {
  const options = ["50", "100", "500"].map(n => el("option", { value: n }, n + " rows"));
  return control(el("select", { id: "size", "aria-label": "rows to a page" }, ...options), "size", "50");
}

// pager turns the pages.
function pager() {
  let page = 1;
  const turn = by => { const q = new URLSearchParams(route.query); q.set("page", String(page + by)); go(route.view, "", q); };
  const back = el("button", { type: "button", id: "previous", onclick: () => turn(-1) }, "‹ previous");
  const next = el("button", { type: "button", id: "next", onclick: () => turn(1) }, "next ›");
  const count = el("span", { id: "count" });
  return {
    elements: [back, count, next],
    update(data) {
      page = data.page;
      put(count, `${whole.format(data.matched)} of ${whole.format(data.total)}, page ${data.page} of ${data.pages}`);
      back.disabled = data.page <= 1;
      next.disabled = data.page >= data.pages;
    },
  };
}

function resource(r) {
  if (r.view === "id") return "ids/" + r.id.split("/").map(encodeURIComponent).join("/");
  if (r.view === "sections") return "sections/" + encodeURIComponent(r.id);
  return r.view;
}

function navigate() {
  const before = route;
  route = parse();
  const same = before && before.view === route.view && before.id === route.id;
  tabs();
  const links = { json: "json", text: "text" };
  for (const [id, format] of Object.entries(links)) {
    const q = new URLSearchParams(route.query);
    q.set("format", format);
    document.getElementById(id).setAttribute("href", resource(route) + "?" + q);
  }
  if (!same) {
    selected = null;
    main.replaceChildren();
    say("");
    shown = (({ ids: identifiers, id: identifier, loops, flight, actions })[route.view] || rows)();
  }
  if (shown.asked) shown.asked();
  listen();
}

function tabs() {
  const all = [...views, ...(about.actions ? [["actions", "Actions"]] : []), ...about.sections.map(s => ["sections/" + s.name, s.title])];
  const at = route.view === "id" ? "ids" : route.view === "sections" ? "sections/" + route.id : route.view;
  document.getElementById("tabs").replaceChildren(...all.map(([view, title]) => {
    const a = el("a", { href: "#/" + view }, title);
    if (view === at) a.setAttribute("aria-current", "page");
    return el("li", {}, a);
  }));
}

// --- news

function listen() {
  if (stream) stream.close();
  stream = null;
  clearTimeout(retry);
  if (document.hidden) return; // nobody looks
  const q = new URLSearchParams(route.query);
  q.set("view", route.view === "sections" ? "section" : route.view);
  if (route.view === "ids") for (const [k, v] of Object.entries(sorting())) q.set(k, v);
  if (route.view === "id") q.set("id", route.id);
  if (route.view === "sections") q.set("name", route.id);
  const mine = new EventSource("events?" + q);
  stream = mine;
  mine.addEventListener("news", e => {
    const data = JSON.parse(e.data), came = performance.now();
    alarm("");
    try {
      shown.update(data);
    } catch (error) {
      alarm("this page has a defect: " + error);
      return;
    }
    requestAnimationFrame(() => setTimeout(() => painted(data, came, Number(e.lastEventId))));
  });
  mine.addEventListener("failure", e => alarm(JSON.parse(e.data)));
  mine.addEventListener("gone", e => { mine.close(); gone(JSON.parse(e.data)); });
  mine.onerror = () => {
    if (mine.readyState !== EventSource.CLOSED) {
      alarm("not connected, trying again");
      return;
    }
    // refused: the answer says why, if the program is there at all
    retry = setTimeout(listen, 3000);
    fetch(resource(route) + "?" + new URLSearchParams([...route.query, ["format", "json"]]))
      .then(async r => {
        if (r.ok) alarm("no live news: there are too many viewers");
        else if (r.status === 404) gone((await r.text()).trim());
        else alarm((await r.text()).trim());
      })
      .catch(() => alarm("the program does not answer"));
  };
}

// painted notes how old what stands on the screen is. It is called when the frame was painted.
function painted(data, came, sent) {
  const age = Date.now() - Date.parse(data.taken);
  document.body.dataset.paintMilliseconds = Math.round(performance.now() - came);
  document.body.dataset.sentMilliseconds = Date.now() - sent;
  document.body.dataset.ageMilliseconds = age;
  document.body.dataset.painted = data.taken;
  put(document.getElementById("status"), (data.taken || "").slice(11, 19) + " UTC");
  if (data.blocked) alarm("blocked: " + data.blocked + ". The counters of its identifiers are old.");
}

// gone reports that what the view shows does not exist, or no longer.
function gone(text) {
  alarm(text);
  if (shown && shown.gone) shown.gone();
}

function alarm(text) {
  const a = document.getElementById("alert");
  put(a, text);
  a.hidden = !text;
}

// --- tables

// table draws rows. open(row) is what Enter and a click do; key(row) is what stays the same. cell
// draws a cell of its own, unless it returns false; dye gives a cell's class. A row with a cell of the
// class silent is in trouble.
function table(title, { key, open, sort, cell, dye }) {
  const head = el("tr"), body = el("tbody");
  const t = el("table", {}, el("caption", {}, title), el("thead", {}, head), body);
  let columns = [];
  // The mouse shows what a cell says exactly.
  body.addEventListener("mouseover", e => {
    const td = e.target.closest("td"), row = td && td.parentElement.row;
    if (!row) return;
    const name = columns[td.cellIndex], value = row[name];
    td.title = typeof value === "number" ? value + " " + name : td.textContent.length > 40 ? td.textContent : "";
  });
  const tr = () => {
    const r = el("tr", open ? { "data-open": "" } : {});
    r.addEventListener("click", e => {
      if (!e.target.closest("a") && open && !String(getSelection())) open(r.row);
    });
    return r;
  };
  return {
    element: el("div", { class: "scroll" }, t),
    open: () => { const r = body.querySelector(".selected"); if (r && open) open(r.row); },
    move(by) {
      const all = [...body.rows], at = all.findIndex(r => r.classList.contains("selected"));
      const to = all[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by, 0), all.length - 1)];
      if (!to) return;
      selected = key(to.row);
      for (const r of all) mark(r);
      to.scrollIntoView({ block: "nearest" });
    },
    update(names, rows, sorted) {
      if (names.join() !== columns.join()) {
        columns = names;
        body.replaceChildren();
        head.replaceChildren(...names.map(n => el("th", { scope: "col", "data-name": n },
          sort && !n.endsWith("_a_second") ? el("button", { type: "button", onclick: () => sort(n) }, label(n)) : label(n))));
      }
      for (const th of head.children) {
        const n = th.dataset.name;
        dress(th, rows.length && typeof rows[0][n] === "number" && n !== "id" ? "number" : "");
        if (!sorted || sorted.name !== n) th.removeAttribute("aria-sort");
        else if (th.getAttribute("aria-sort") !== order(sorted)) th.setAttribute("aria-sort", order(sorted));
      }
      while (body.rows.length > rows.length) body.lastChild.remove();
      while (body.rows.length < rows.length) body.append(tr());
      let r = body.firstElementChild;
      for (const row of rows) {
        r.row = row;
        if (r.childElementCount !== columns.length) r.replaceChildren(...columns.map(() => el("td")));
        let td = r.firstElementChild;
        for (const n of columns) {
          fill(td, n, row);
          td = td.nextElementSibling;
        }
        r.classList.toggle("trouble", r.querySelector(".silent") !== null);
        mark(r);
        r = r.nextElementSibling;
      }
    },
  };
  function order(sorted) {
    return sorted.descending ? "descending" : "ascending";
  }
  function mark(r) {
    const is = selected !== null && key(r.row) === selected;
    if (r.classList.contains("selected") === is) return;
    r.classList.toggle("selected", is);
    if (is) r.setAttribute("aria-selected", "true");
    else r.removeAttribute("aria-selected");
  }
  function fill(td, name, row) {
    dress(td, ((typeof row[name] === "number" && name !== "id" ? "number " : "") + (dye && dye(name, row) || "")).trim());
    if (cell && cell(td, name, row)) return;
    if (td.firstElementChild) td.replaceChildren();
    put(td, show(name, row[name]));
  }
}

const keyOf = row => row.id ? String(row.id) : row.pid || row.name || (row.loop || "") + "/" + (row.pool || Object.values(row)[0]);
const openID = row => go("ids", keyOf(row));

// idCell makes a number a link.
function idCell(td, name, row) {
  if (name === "id" || name === "pid" && !row.id) {
    return linkCell(td, row.id ? String(row.id) : row.pid || "", "#/ids/" + encodeURIComponent(keyOf(row)), "");
  }
  return false;
}

// idDye gives a state and a trouble their colours.
const idDye = (name, row) => name === "state" ? row.state : name === "trouble" && row.trouble ? "silent" : "";

function linkCell(td, text, href, title) {
  let a = td.firstElementChild;
  if (!a) td.replaceChildren(a = el("a", title ? { title } : {}));
  if (a.getAttribute("href") !== href) a.setAttribute("href", href);
  put(a, text);
  return true;
}

// sectionCell makes what a program calls identifier a link to it.
function sectionCell(td, name, row) {
  if (name !== "identifier" || !row.identifier) return false;
  return linkCell(td, String(row.identifier), "#/ids/" + encodeURIComponent(row.identifier));
}

// --- the identifiers

function identifiers() {
  const filter = control(el("input", { type: "search", id: "filter", placeholder: "filter: any text", "aria-label": "filter by any text", autocomplete: "off" }), "q");
  const peer = control(el("input", { type: "search", id: "peer", placeholder: "peer", "aria-label": "filter by the peer's address", autocomplete: "off", size: "20" }), "peer");
  const state = el("select", { id: "state", "aria-label": "state" });
  const size = sizes(), pages = pager();
  const sparks = el("div", { class: "sparks", id: "totals" }), drawn = new Map();
  const picture = diagram(name => ask({ state: route.query.get("state") === name ? "" : name }));
  let last = null, before = null; // the answer, and the counters before it: {at, rows}
  // rates gives the rows what they have sent and received a second since the answer before.
  function rates(data) {
    const at = Date.parse(data.taken) / 1000, rows = new Map(data.rows.map(r => [r.pid, r]));
    for (const r of data.rows) {
      const b = before && before.rows.get(r.pid), took = b ? at - before.at : 0;
      for (const name of ["sent", "received"]) {
        const counter = name + "_messages";
        r[name + "_a_second"] = took > 0 ? Math.max(r[counter] - b[counter], 0) / took : b ? b[name + "_a_second"] : undefined;
      }
    }
    before = { at, rows };
  }
  state.addEventListener("change", () => ask({ state: state.value }));
  const list = table("Identifiers", {
    key: keyOf, open: openID, cell: idCell, dye: idDye,
    sort: n => {
      const { sort, order } = sorting();
      ask({ sort: n, order: n === sort && order !== "desc" || n !== sort && n === "trouble" ? "desc" : "asc" });
    },
  });
  const controls = [filter, peer, size];
  const tools = el("div", { class: "tools" }, filter.element, peer.element, state, size.element, ...pages.elements);
  main.append(el("div", { class: "overview" }, picture.element, sparks), tools, list.element);
  return {
    list, filter: filter.element,
    asked() { // the query has changed
      for (const c of controls) c.asked();
      if (last) choices(last);
    },
    escape() {
      if (document.activeElement === filter.element || document.activeElement === peer.element) document.activeElement.blur();
      else if (selected) { selected = null; list.move(0); selected = null; this.update(last); }
      else { filter.element.value = peer.element.value = ""; go("ids", ""); }
    },
    update(data) {
      last = data;
      choices(data);
      picture.update(data.states, route.query.get("state"));
      pages.update(data);
      remember("", data);
      for (const name of ["sent_messages", "received_messages", "queued_messages", "unfreed_messages"]) spark(sparks, drawn, name, "");
      rates(data);
      const { sort, order } = sorting(), names = idColumns.includes(sort) ? idColumns : idColumns.toSpliced(5, 0, sort);
      const seen = names.filter(n => !optional.includes(n) || n === sort || data.rows.some(r => r[n]));
      list.update(seen, data.rows, { name: sort, descending: order === "desc" });
    },
  };
  function choices(data) {
    const chosen = route.query.get("state") || "";
    const names = [...new Set([...Object.keys(data.states).sort(), ...(chosen ? [chosen] : [])])];
    const want = ["", ...names].map(n => n ? `${n} (${data.states[n] || 0})` : "every state");
    if ([...state.options].map(o => o.text).join() !== want.join()) {
      state.replaceChildren(...["", ...names].map((n, i) => el("option", { value: n }, want[i])));
    }
    state.value = chosen;
  }
}

// diagram shows the state machine with counts. A click on a state filters.
function diagram(choose) {
  const place = el("div", { id: "diagram" });
  const flavor = el("select", { "aria-label": "whose state machine" }, ...[["iwarp", "iWARP"], ["ib", "InfiniBand, RoCE"], ["ud", "datagrams"]]
    .map(([v, t]) => el("option", { value: v }, t)));
  flavor.value = localStorage.getItem("flavor") || "iwarp";
  const element = el("details", matchMedia("(max-width: 700px)").matches ? {} : { open: "" }, el("summary", {}, "States"), place, flavor);
  let counts = {}, chosen = null;
  const load = () => fetch("states.svg?flavor=" + encodeURIComponent(flavor.value)).then(r => r.text()).then(text => {
    const picture = document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
    for (const g of picture.querySelectorAll("[data-state]")) {
      g.setAttribute("tabindex", "0");
      g.setAttribute("role", "button");
      g.setAttribute("aria-label", g.dataset.state);
      g.addEventListener("click", () => choose(g.dataset.state));
      g.addEventListener("keydown", e => {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); e.stopPropagation(); choose(g.dataset.state); }
      });
    }
    place.replaceChildren(picture);
    update(counts, chosen);
  }).catch(() => {});
  flavor.addEventListener("change", () => { localStorage.setItem("flavor", flavor.value); load(); });
  load();
  function update(states, state) {
    counts = states;
    chosen = state;
    for (const g of place.querySelectorAll("[data-state]")) {
      const n = counts[g.dataset.state] || 0;
      put(g.querySelector(".count"), whole.format(n));
      g.classList.toggle("some", n > 0);
      g.classList.toggle("chosen", g.dataset.state === chosen);
      if (g.getAttribute("aria-pressed") !== String(g.dataset.state === chosen)) g.setAttribute("aria-pressed", String(g.dataset.state === chosen));
    }
  }
  return { element, update };
}

// --- one identifier

const gauges = ["credits_send_messages", "credits_receive_messages", "unacked_messages", "unfreed_messages", "queued_messages",
  "in_flight_messages", "mailbox_messages", "memory_bytes"];
const counters = ["delivered_messages", "sent_messages", "sent_bytes", "received_messages", "received_bytes", "reads", "read_bytes", "writes",
  "write_bytes", "atomics", "credit_waits", "large_sent_messages", "large_received_messages"];

// The path's fields, which are empty on iWARP.
const path = /^(gid_|service_level|traffic_class|mtu_|ack_timeout|retry_|rnr_|min_rnr)/;

function identifier() {
  const title = el("h2", { id: "title" }), meaning = el("p"), facts = el("dl", { class: "facts" });
  const history = el("ol", { class: "history", id: "history" }), sparks = el("div", { class: "sparks", id: "sparks" });
  const records = el("a", { id: "records", hidden: "" }, "its records in the flight recorder");
  const details = el("div", { hidden: "" }, title, meaning, el("h2", {}, "History"), history, el("h2", {}, "Counters"), sparks, el("h2", {}, "All"), facts);
  const buttons = el("div", { class: "tools" }, el("a", { href: "#/ids", id: "back" }, "‹ all identifiers"), records, ...identifierActions());
  main.append(buttons, details);
  const drawn = new Map();
  function link(id) {
    records.setAttribute("href", "#/flight?id=" + id);
    records.hidden = false;
  }
  return {
    number: 0,
    escape() { goBack(); },
    gone() {
      for (const b of buttons.querySelectorAll("button")) b.disabled = true;
      if (/^[1-9][0-9]*$/.test(route.id)) link(route.id);
    },
    update(data) {
      this.number = data.id;
      details.hidden = false;
      if (data.id) link(data.id);
      for (const b of buttons.querySelectorAll("button")) b.disabled = !data.id;
      put(title, (data.id ? "identifier " + data.id : data.pid) + ": " + data.state + (data.trouble ? ", " + data.trouble : ""));
      title.className = data.trouble ? "silent" : data.state;
      put(meaning, data.meaning + ". The kernel calls that " + data.kernel + "." + (data.waiting ? " It waits for the answer to " + data.waiting + "." : ""));
      timeline(history, data);
      remember(data.pid, data);
      for (const name of [...counters, ...gauges]) if (name in data) spark(sparks, drawn, name, data.pid);
      list(facts, Object.entries(data).filter(([n, v]) => typeof v !== "object" && (v || !path.test(n))));
    },
  };
}

function goBack() {
  if (window.history.length > 1) window.history.back();
  else go("ids", "");
}

// timeline draws how long each state has lasted. The bars are logarithmic: a connect takes
// microseconds, a connection days.
function timeline(place, data) {
  const log = s => Math.log10(1 + s * 1e6);
  const longest = Math.max(...data.history.map(h => log(h.for_seconds)), 1);
  while (place.children.length > data.history.length) place.lastChild.remove();
  data.history.forEach((h, i) => {
    let li = place.children[i];
    if (!li) place.append(li = el("li", {}, el("span", { class: "name" }), el("span", { class: "for" }), el("span", { class: "bar" })));
    put(li.children[0], h.state);
    li.children[0].className = "name " + h.state;
    put(li.children[1], duration(h.for_seconds));
    li.children[2].style.width = (100 * log(h.for_seconds) / longest).toFixed(1) + "%";
    li.title = "entered " + duration(h.at_seconds) + " after it was made";
  });
}

function list(place, entries) {
  while (place.children.length > entries.length) place.lastChild.remove();
  entries.forEach(([name, value], i) => {
    let div = place.children[i];
    if (!div) place.append(div = el("div", {}, el("dt"), el("dd")));
    put(div.children[0], longLabel(name));
    put(div.children[1], show(name, value) || "–");
    div.title = name + ": " + value;
  });
}

function remember(pid, data) {
  let s = samples.get(pid);
  if (!s) {
    if (samples.size >= 9) samples.delete([...samples.keys()].find(k => k !== ""));
    samples.set(pid, s = []);
  }
  const at = Date.parse(data.taken) / 1000, last = s.length ? s[s.length - 1].at : 0;
  if (at === last) return;
  if (at < last) s.length = 0; // the clock was set back
  s.push({ at, data: Object.fromEntries(Object.entries(data).filter(([, v]) => typeof v === "number")) });
  if (s.length > kept) s.shift();
}

// series is a gauge as it was, or a counter's rate.
function series(name, pid) {
  const s = samples.get(pid) || [];
  if (!counters.includes(name)) return s.map(x => x.data[name]);
  return s.slice(1).map((x, i) => Math.max(x.data[name] - s[i].data[name], 0) / (x.at - s[i].at));
}

function spark(place, drawn, name, pid) {
  let d = drawn.get(name);
  if (!d) {
    const path = svg("path"), out = el("output"), span = el("p");
    const picture = svg("svg", { viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(path);
    const rate = counters.includes(name) ? "/s" : "";
    place.append(el("div", { class: "spark" }, el("p", {}, longLabel(name) + rate, out), picture, span));
    drawn.set(name, d = { path, out, span });
  }
  const values = series(name, pid), most = Math.max(...values, 1e-9), all = samples.get(pid) || [];
  // the time of the curve, and its highest value
  put(d.span, values.length > 1 ? `${duration(Math.round(all[all.length - 1].at - all[0].at))}, at most ${show(name, Math.max(...values))}` : "");
  put(d.out, values.length ? show(name, values[values.length - 1]) : "…");
  d.path.setAttribute("d", values.map((v, i) => (i ? "L" : "M") + (100 * i / Math.max(values.length - 1, 1)).toFixed(1) + " " + (29 - 28 * v / most).toFixed(1)).join(""));
}

// --- loops, and the plain tables

function loops() {
  let last = null;
  const dye = (name, row) => name.startsWith("blocked") && row.blocked_seconds || name === "recent_turn_seconds" && row[name] > 0.1 ||
    ["panics", "tampered_connections"].includes(name) && row[name] ? "silent" : "";
  const list = table("Loops", { key: keyOf, dye, cell(td, name, row) {
    if (name === "name") return linkCell(td, row.name, "#/flight?loop=" + encodeURIComponent(row.name), "what its flight recorder has");
    if (name !== "busy_share") return false;
    let bar = td.firstElementChild;
    if (!bar) td.replaceChildren(bar = el("span", { class: "load" }, el("i")), el("span"));
    bar.firstChild.style.width = Math.min(100 * row.busy_share, 100) + "%";
    put(td.lastChild, (100 * row.busy_share).toFixed(1) + " %");
    return true;
  } });
  main.append(list.element);
  return {
    list,
    update(data) {
      const at = Date.parse(data.taken) / 1000;
      for (const row of data.rows) {
        const before = last && last.rows.find(r => r.name === row.name), took = last && at - last.at;
        if ("busy_seconds" in row) row.busy_share = row.blocked_seconds ? 1 : before && took > 0 ? (row.busy_seconds - before.busy_seconds) / took : 0;
        if (before && took > 0) row.turns_a_second = (row.turns - before.turns) / took;
      }
      if (!last || at !== last.at) last = { at, rows: data.rows };
      const names = Object.keys(data.rows[0] || {}).filter(n => typeof data.rows[0][n] !== "object");
      const first = ["name", "busy_share", "blocked_seconds", "blocked_by", "identifiers", "queued", "recent_turn_seconds", "turn_seconds",
        "longest_turn_seconds", "longest_wait_seconds"].filter(n => names.includes(n));
      list.update([...first, ...withValues(names.filter(n => !first.includes(n) && n !== "busy_seconds"), data.rows)], data.rows);
    },
  };
}

// withValues returns the columns in which a row has a value.
const withValues = (names, rows) => names.filter(n => rows.some(r => r[n]));

// The plain tables: their first columns, columns that are left out while they have no value, and the
// cells that are trouble.
const plain = {
  listeners: {
    cell: idCell, open: openID,
    first: ["id", "local", "connections", "requests", "pending", "accepted", "rejected", "timed_out", "dropped"],
    rare: /^(refused_|strangers|starved|owner)/,
    dye: (name, row) => name === "pending" && row.pending > 1000 || name === "starved" && row.starved ? "silent" :
      /^(refused_|timed_out|dropped)/.test(name) && row[name] ? "busy" : "",
  },
  memory: {
    cell(td, name, row) {
      if (row[name] || !["loop", "registered_bytes", "limit_bytes", "old_seconds"].includes(name)) return false;
      put(td, name === "loop" ? "process" : name === "limit_bytes" ? "none" : "");
      return true;
    },
    first: ["loop", "pool", "waiting_connections", "used_bytes", "limit_bytes"],
    dye: (name, row) => name === "waiting_connections" && row.waiting_connections ? "silent" : "",
  },
};

function rows() {
  const title = el("h2"), { first = [], rare = null, ...how } = plain[route.view] || { cell: sectionCell };
  const list = table(route.view, { key: keyOf, ...how });
  main.append(title, list.element);
  return {
    list,
    update(data) {
      put(title, data.title ? data.title + (data.total > data.rows.length ? `, the first ${data.rows.length} of ${data.total}` : "") : "");
      if (data.error) alarm("this table is old: " + data.error);
      else if (data.late_seconds > 2) alarm("this table is " + duration(data.late_seconds) + " old");
      const names = data.columns || Object.keys(data.rows[0] || {}), others = names.filter(n => !first.includes(n));
      const seen = withValues(others, data.rows);
      list.update([...first.filter(n => names.includes(n)), ...others.filter(n => !rare || !rare.test(n) || seen.includes(n))], data.rows);
    },
  };
}

// --- keyboard

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const typing = e.target.matches("input, select, textarea");
  if (e.key === "Escape") {
    if (shown && shown.escape) shown.escape();
    else go("ids", "");
    return;
  }
  if (typing) {
    if (e.key === "Enter") e.target.blur();
    return;
  }
  const list = shown && shown.list;
  if (e.key === "/") {
    e.preventDefault();
    if (shown && shown.filter) shown.filter.focus();
    else go("ids", "");
  } else if (e.key === "j" || e.key === "k") {
    if (list) list.move(e.key === "j" ? 1 : -1);
  } else if (e.key === "Enter" && !e.target.closest("a, button, summary")) {
    if (list) list.open();
  } else if (/^[1-9]$/.test(e.key)) {
    const a = document.querySelectorAll("#tabs a")[Number(e.key) - 1];
    if (a) a.click();
  }
});

document.addEventListener("visibilitychange", listen);
window.addEventListener("hashchange", navigate);
fetch("overview?format=json").then(r => r.json()).then(a => { about = a; }).catch(() => {}).finally(navigate);

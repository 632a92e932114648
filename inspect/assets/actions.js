"use strict";
// What an operator may do here, if the program lets him: each action needs the token.

// question asks the user whether he is sure, and for the token unless this tab has it. The answer is
// the token, or null.
function question(text, sure) {
  const known = sessionStorage.getItem("token") || "";
  const token = el("input", { type: "password", id: "token", autocomplete: "off", required: "", size: "32" });
  const form = el("form", {}, el("p", {}, text));
  if (!known) form.append(el("p", {}, el("label", { for: "token" }, "token "), token));
  const d = el("dialog", { id: "question", "aria-label": "sure?" }, form);
  return new Promise(answer => {
    form.append(el("div", { class: "tools" },
      el("button", { type: "submit", id: "sure" }, sure), el("button", { type: "button", id: "cancel", onclick: () => d.close() }, "cancel")));
    form.addEventListener("submit", e => {
      e.preventDefault();
      answer(known || token.value);
      d.close();
    });
    d.addEventListener("close", () => { d.remove(); answer(null); });
    document.body.append(d);
    d.showModal();
  });
}

// say shows what has become of an action, until the next one.
function say(text, bad) {
  const o = document.getElementById("outcome");
  put(o, text);
  o.hidden = !text;
  o.classList.toggle("bad", !!bad);
}

// perform asks, acts and says what has become of it. The answer is null if nothing has.
async function perform(text, sure, address, options) {
  const token = await question(text, sure);
  if (token === null) return null;
  say(text.replace("?", "") + " …");
  try {
    const r = await fetch(address, { ...options, headers: { Authorization: "Bearer " + token, "Content-Type": "application/json" } });
    if (r.status === 403) sessionStorage.removeItem("token");
    else sessionStorage.setItem("token", token);
    if (r.ok) return r;
    say(text.replace("?", "") + ": " + (await r.text()).trim(), true);
  } catch (error) {
    say("the program does not answer: " + error, true);
  }
  return null;
}

async function act(action, body, text) {
  const r = await perform(text + "?", action, "actions/" + action, { method: "POST", body: JSON.stringify(body) });
  if (r) say(text + ": " + (await r.json()).outcome);
}

async function download(number) {
  const name = `capture-${number}.pcapng`;
  const r = await perform(`download capture ${number}?`, "download", `captures/${number}.pcapng`, {});
  if (!r) return;
  const address = URL.createObjectURL(await r.blob());
  const a = el("a", { href: address, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  say(name + " is downloaded");
}

// identifierActions are those about one identifier.
function identifierActions() {
  if (!about.actions) return [];
  const on = (action, body) => el("button", { type: "button", "data-action": action,
    onclick: () => act(action, body(), `${action} identifier ${route.id}`) }, action);
  const id = () => ({ id: Number(shown.number) });
  return [on("disconnect", id), on("drain", id), on("capture", id)];
}

function actions() {
  const level = el("select", { id: "level", "aria-label": "log level" });
  const set = el("button", { type: "button", id: "set-level", onclick: () => act("level", { level: level.value }, "log at " + level.value) }, "set");
  const now = el("span", { id: "level-now" });
  const peer = el("input", { id: "capture-peer", placeholder: "10.0.0.7:4791 or 10.0.0.0/8", "aria-label": "of which peer", autocomplete: "off", size: "26" });
  const seconds = el("input", { id: "capture-seconds", type: "number", min: "1", max: "600", value: "60", "aria-label": "for how many seconds" });
  const start = el("button", { type: "button", id: "capture-start",
    onclick: () => act("capture", { peer: peer.value.trim(), seconds: Number(seconds.value) }, "capture peer " + peer.value.trim()) }, "start");
  const off = el("p", { id: "actions-off" }), levels = el("div", { class: "tools" }, "at least", level, set, now);
  const captures = el("div", { class: "tools" }, "of peer", peer, "for", seconds, "seconds", start);
  const list = table("Captures", { key: row => String(row.capture), cell: captureCell });
  main.append(off, el("h2", {}, "Log level"), levels, el("h2", {}, "Captures"), captures, list.element);
  let last = "";
  return {
    list,
    escape() { if (document.activeElement.matches("input, select")) document.activeElement.blur(); else go("ids", ""); },
    update(data) {
      put(off, data.possible ? "Each action needs the token and is logged." : "Actions are not switched on.");
      put(now, data.log_level ? "now " + data.log_level : "This program's log has no level that could be set.");
      level.disabled = set.disabled = !data.log_level;
      peer.disabled = seconds.disabled = start.disabled = !data.captures;
      if (data.log_level !== last) {
        last = data.log_level;
        level.replaceChildren(...choice([...new Set(["DEBUG", "INFO", "WARN", "ERROR", ...(last ? [last] : [])])]));
        level.value = last;
      }
      list.update(["capture", "actions", "state", "of", "for_seconds", "file_bytes", "error", "begun", "limit_seconds", "limit_bytes"], data.rows);
    },
  };
}

// captureCell has the buttons of a capture. They stay the same elements, or a click would be lost.
function captureCell(td, name, row) {
  if (name !== "actions") return false;
  if (!td.firstElementChild) {
    const number = () => td.closest("tr").row.capture;
    const on = (action, text, f) => el("button", { type: "button", "data-action": action, onclick: f }, text);
    td.append(
      on("stop", "stop", () => act("capture-stop", { capture: number() }, "stop capture " + number())),
      on("download", "download", () => download(number())),
      on("delete", "delete", () => act("capture-delete", { capture: number() }, "delete capture " + number())));
  }
  const [stop, , remove] = td.children;
  stop.disabled = row.state !== "running";
  remove.disabled = row.state === "running";
  return true;
}

"use strict";
// The flight recorders: what the loops have recorded, the latest first.

const kinds = ["transition", "command", "event", "refusal", "end", "panic", "stall", "handshake"];

function flight() {
  const id = control(el("input", { type: "search", id: "of", placeholder: "identifier", "aria-label": "of which identifier", inputmode: "numeric",
    pattern: "[0-9]*", autocomplete: "off", size: "12" }), "id");
  const text = control(el("input", { type: "search", id: "filter", placeholder: "filter: any text", "aria-label": "filter by any text", autocomplete: "off" }), "q");
  const kind = control(el("select", { id: "kind", "aria-label": "kind" }, ...choice(["", ...kinds], "every kind")), "kind");
  const loop = control(el("select", { id: "loop", "aria-label": "loop" }, ...choice([""], "every loop")), "loop");
  const size = sizes(), pages = pager();
  const recorded = el("p", { id: "recorded" });
  const list = table("Flight recorder", {
    key: row => row.loop + "/" + row.number,
    open: row => row.id ? go("ids", String(row.id)) : null,
    dye: (name, row) => name === "kind" && ["refusal", "end", "panic", "stall"].includes(row.kind) ? "silent" : "",
    cell(td, name, row) {
      if (name === "id" && !row.id) { put(td, "the loop"); return true; }
      return idCell(td, name, row);
    },
  });
  const controls = [id, text, kind, loop, size];
  main.append(el("div", { class: "tools" }, ...controls.map(c => c.element), ...pages.elements), recorded, list.element);
  return {
    list, filter: text.element,
    asked() { for (const c of controls) c.asked(); },
    escape() {
      if (controls.some(c => c.element === document.activeElement)) document.activeElement.blur();
      else goBack();
    },
    update(data) {
      const names = data.loops.map(l => l.loop), chosen = route.query.get("loop") || "";
      if (chosen && !names.includes(chosen)) names.push(chosen);
      if (loop.element.options.length !== names.length + 1) loop.element.replaceChildren(...choice(["", ...names], "every loop"));
      loop.asked();
      pages.update(data);
      put(recorded, data.loops.map(l => `${l.loop}: the last ${whole.format(l.records)} records; ${whole.format(l.overwritten)} older ones are overwritten`).join(" · "));
      list.update(["at", "id", "kind", "what", "error", "ago_seconds", "loop", "number"], data.rows);
    },
  };
}

// A table that changes in place: rows and cells stay the same elements, so that
// the focus, a selection and what a screen reader is reading stay where they are.

// el makes an element with classes and children. Strings become text, never
// markup.
export function el(tag, classes, ...children) {
  const e = document.createElement(tag);
  if (classes) e.className = classes;
  e.append(...children);
  return e;
}

// chip is a state as a word on its colour.
export const chip = (text, kind) => ({ text, kind });

// fill shows one row for each item. key(item) tells items apart; cells(item)
// gives text, a chip, a list of these for a chain, or {button, label, click} for
// each column, the first of which heads the row.
export function fill(table, items, key, cells) {
  const body = table.tBodies[0], heads = headsOf(table);
  const old = new Map([...body.rows].map((r) => [r.dataset.key, r]));
  const seen = new Map(); // two items may look alike
  const fresh = "filled" in table.dataset ? "new" : "";
  let at = body.firstElementChild;
  for (const item of items) {
    const name = String(key(item)), nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    const k = nth ? `${name} ${nth}` : name;
    let row = old.get(k);
    if (row) old.delete(k);
    else row = blank(k, heads, fresh);
    if (row === at) at = at.nextElementSibling;
    else body.insertBefore(row, at);
    cells(item).forEach((c, i) => put(row.cells[i], c));
  }
  for (const row of old.values()) row.remove();
  table.dataset.filled = "";
  table.closest("section").classList.toggle("filled", items.length > 0);
}

// headsOf are the heads of the columns. Roles are said in so many words, since a
// narrow page lays a table out as cards, and a browser may then forget them.
function headsOf(table) {
  const heads = [...table.tHead.rows[0].cells];
  if (!table.hasAttribute("role")) {
    table.setAttribute("role", "table");
    for (const part of [table.tHead, table.tBodies[0]]) part.setAttribute("role", "rowgroup");
    table.tHead.rows[0].setAttribute("role", "row");
    for (const h of heads) h.setAttribute("role", "columnheader");
  }
  return heads;
}

function blank(key, heads, classes) {
  const row = el("tr", classes);
  row.dataset.key = key;
  row.setAttribute("role", "row");
  heads.forEach((head, i) => {
    const cell = el(i === 0 ? "th" : "td", head.className);
    if (i === 0) cell.scope = "row";
    cell.setAttribute("role", i === 0 ? "rowheader" : "cell");
    cell.dataset.head = head.textContent;
    row.append(cell);
  });
  return row;
}

// put changes a cell only if it shows something else.
function put(cell, value) {
  if (value && value.button) {
    let b = cell.firstElementChild;
    if (!b) cell.append((b = el("button")));
    b.type = "button";
    if (b.textContent !== value.button) b.textContent = value.button;
    b.setAttribute("aria-label", value.label);
    b.onclick = value.click;
    return;
  }
  const shown = JSON.stringify(value ?? "");
  if (cell.dataset.shown === shown) return;
  cell.dataset.shown = shown;
  if (Array.isArray(value)) cell.replaceChildren(chainOf(value));
  else cell.replaceChildren(...piece(value));
}

function piece(value) {
  if (value && typeof value === "object") {
    const list = value.before ? [value.before + " "] : [];
    if (value.text) list.push(el("span", "is " + value.kind, value.text));
    return list;
  }
  return [String(value ?? "")];
}

function chainOf(list) {
  const ol = el("ol", "chain");
  for (const v of list) ol.append(el("li", "", ...piece(v)));
  return ol;
}

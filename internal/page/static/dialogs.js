// Dialogs. Each does one thing and closes when it is done; what goes wrong is
// said in it.
import { el } from "./table.js";

const $ = (id) => document.getElementById(id);

// open shows a dialog and calls submit until it succeeds or somebody gives up.
function open(name, submit) {
  const dialog = $(name + "-dialog"), form = $(name + "-form"), error = form.querySelector(".error");
  if (dialog.open) return;
  error.textContent = "";
  form.querySelector(".close").onclick = () => dialog.close();
  form.onsubmit = async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    try {
      await submit();
      dialog.close();
    } catch (err) {
      error.textContent = err.message;
    } finally {
      button.disabled = false;
    }
  };
  dialog.showModal();
}

// ask asks for the admin key.
export function ask(why, use) {
  $("key-why").textContent = why;
  $("key").value = "";
  open("key", () => use($("key").value));
}

// confirmed does something after a yes.
export function confirmed(what, act) {
  $("sure-what").textContent = what;
  open("sure", act);
}

// notice says what went wrong where no dialog was open.
export function notice(text) {
  $("notice-what").textContent = text;
  open("notice", async () => {});
}

// flipDialog asks what to switch, to what, and why.
export function flipDialog(keys, chosen, act) {
  const list = chosen && !keys.includes(chosen) ? [chosen, ...keys] : keys;
  const none = new Option("Choose…", "");
  none.disabled = true;
  $("flag").replaceChildren(none, ...list.map((k) => el("option", "", k)));
  $("flag").value = chosen ?? ""; // nothing is chosen for an operator who has not
  $("reason").value = "";
  const form = $("flip-form");
  form.elements.to.value = "off";
  open("flip", () => act({ flag: $("flag").value, to: form.elements.to.value, reason: $("reason").value, by: $("by").value.trim() }));
}

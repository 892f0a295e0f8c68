// What the pages share: their data, elements and moving with the arrow keys.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const isolated = (text) => element("bdi", {}, text);
const quoted = (text) => `“${text}”`;
function options(select, texts, chosen) {
  select.replaceChildren(...texts.map(([value, text]) => element("option", { value }, text)));
  select.value = String(chosen);
}

// Inside a group one place is reached with Tab, the others with the arrow keys.
function moved(position, count, key) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  return Math.max(0, Math.min(count - 1, position + (key === "ArrowDown" || key === "ArrowRight" ? 1 : -1)));
}

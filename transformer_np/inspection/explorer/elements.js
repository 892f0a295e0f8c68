// What the pages share: their data, numbers as people read them, elements and moving with the arrow keys.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i); // 20 times as fast as Uint8Array.from
  return bytes;
}
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

function rounded(value) {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : String(value);
  const size = Math.abs(value);
  const text = value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

// Gradients are often small: three digits wherever they stand.
function precise(value) {
  if (value === 0 || !Number.isFinite(value)) return rounded(value);
  const text = Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toPrecision(2);
  return text.replaceAll("-", "−");
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const isolated = (text) => element("bdi", {}, text);
const capital = (text) => text[0].toUpperCase() + text.slice(1);
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

// Replace what is inside, and keep the keyboard's place: the new element with the same data-key gets the focus.
function redraw(container, ...children) {
  const key = container.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  container.replaceChildren(...children);
  if (key !== undefined) container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// A button of a group in which the arrow keys move; one of them, `here`, is reached with Tab.
function choice(key, { here = false, pressed, label, name = "" }, act, ...children) {
  const made = element("button", { type: "button", "data-key": key, tabindex: here ? 0 : -1 }, ...children);
  if (name) made.className = name;
  if (label) made.setAttribute("aria-label", label);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", act);
  return made;
}

// A button that is the same one each time it is drawn, with what it was made with.
const buttons = new Map();
function sameButton(key, name, act, parts) {
  if (!buttons.has(key)) buttons.set(key, choice(key, { name }, act, ...parts()));
  return buttons.get(key);
}
// Set the properties of an element that differ: the browser draws again what is set.
function update(item, properties) {
  for (const [name, value] of Object.entries(properties)) if (item[name] !== value) item[name] = value;
}

// Move in a group of buttons with the arrow keys; columns(): how many are in a row, 1 for a list.
function moveWithArrows(container, columns = () => 1) {
  container.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName !== "BUTTON") return;
    const all = [...container.querySelectorAll("button[data-key]")];
    const place = all.indexOf(event.target);
    const wide = columns(event.target);
    let goal;
    if (wide > 1 && ["ArrowUp", "ArrowDown"].includes(event.key))
      goal = place + (event.key === "ArrowUp" ? -wide : wide);
    else if (event.key.startsWith("Arrow") || ["Home", "End"].includes(event.key))
      goal = moved(place, all.length, event.key);
    if (all[goal] === undefined) return;
    event.preventDefault();
    all[goal].focus();
  });
}

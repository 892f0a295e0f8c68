// Keeps the page's files, so that it opens without a network after the first visit. Files whose content never changes
// under one address are taken from the copies; for the others, such as the course, the network comes first.

const NAME = "homework";
const LASTING = /\/pyodide[-/]|\/transformer_np-[0-9a-f]+\.zip$/;
const ARCHIVE = /\/transformer_np-[0-9a-f]+\.zip$/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  const isOurs = url.startsWith(self.registration.scope) || LASTING.test(new URL(url).pathname);
  if (method === "GET" && isOurs) event.respondWith(answer(event.request));
});

async function answer(request) {
  const copies = await caches.open(NAME);
  const copy = await copies.match(request, { ignoreSearch: true });
  if (copy && LASTING.test(new URL(request.url).pathname)) return copy;
  try {
    const fresh = await fetch(request);
    if (fresh.status === 200) await keep(copies, request, fresh.clone()).catch(() => {}); // a full disk
    return fresh;
  } catch (error) {
    if (copy) return copy;
    throw error;
  }
}

async function keep(copies, request, fresh) {
  if (ARCHIVE.test(request.url)) {
    for (const old of await copies.keys()) {
      if (ARCHIVE.test(old.url) && old.url.startsWith(self.registration.scope)) await copies.delete(old);
    }
  }
  await copies.put(request, fresh);
}

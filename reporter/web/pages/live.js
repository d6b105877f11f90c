// Learns from the server when what a page shows has changed (GET /api/crcr/live): server-sent
// events, each of which ends its answer; the browser asks again by itself.

const JITTER_MS = 500;   // many readers of one page do not come back at once
const AGAIN_MS = 60000;  // after a failure; meanwhile the page asks by itself

let source = null;   // an EventSource; null: nothing is followed
let followed = "";   // the URL
let known = "";      // the digest of what the page has, or is about to fetch
let resting = 0;     // no attempt before that, by performance.now()

export const isLive = () => source !== null;

// Of an answer; a proxy may have marked it as weak.
export const tagOf = (answer) => (/[0-9a-f]{32}/.exec(answer.headers.get("ETag") || "") || [""])[0];

export function leave() {
  if (source) source.close();
  source = null;
}

// From now on changed() is called when what is at the URL has another digest than tag, and failed()
// when that cannot be learned any more. The page is to call this after each answer: of two servers
// one may know of a change before the other does.
export function follow(url, tag, changed, failed) {
  if (source && followed === url && known === tag) return;
  leave();
  if (!tag || typeof EventSource === "undefined" || performance.now() < resting) return;
  const mine = source = new EventSource(`/api/crcr/live?of=${encodeURIComponent(url)}&etag=${tag}`);
  let opened = false;
  followed = url;
  known = tag;
  mine.onopen = () => { opened = true; };
  mine.addEventListener("changed", (event) => {
    if (mine !== source) return;
    known = event.lastEventId;
    setTimeout(changed, Math.random() * JITTER_MS);
  });
  // Each answer ends with an error, too; one that never began is a failure.
  mine.onerror = () => {
    const failure = !opened || mine.readyState === EventSource.CLOSED;
    opened = false;
    if (!failure || mine !== source) return;
    leave();
    resting = performance.now() + AGAIN_MS;
    failed();
  };
}

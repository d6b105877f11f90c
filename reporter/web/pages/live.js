// Learns from the server when what a page shows has changed (GET /api/crcr/live): server-sent
// events, each of which ends its answer; the browser asks again by itself.

const JITTER_MS = 500;   // many readers of one page do not come back at once
const AGAIN_MS = 60000;  // after a failure; meanwhile the page asks by itself
const OF_MAX = 8;        // answers that one request may follow

let source = null;   // an EventSource; null: nothing is followed
let followed = "";   // the URL
let known = "";      // the digests of what the page has, or is about to fetch
let resting = 0;     // no attempt before that, by performance.now()
let looked = true;   // false: the server has said that nobody looked, and nothing else since

export const isFollowing = () => source !== null;
// What is on the page would have changed by now.
export const isLive = () => isFollowing() && looked;

// Of an answer; a proxy may have marked it as weak.
export const tagOf = (answer) => (/[0-9a-f]{32}/.exec(answer.headers.get("ETag") || "") || [""])[0];

export function leave() {
  if (source) source.close();
  source = null;
}

// answers: [{ url, tag }], all that the page is made of; without a tag where there was none. From now
// on changed() is called when one of them has another digest than its tag, unchanged() when the
// server has said that none has, and failed() when that cannot be learned any more, or nobody looked. The page is to
// call this after each time it asked: of two servers one may know of a change before the other does.
export function follow(answers, { changed, unchanged, failed }) {
  const of = answers.slice(0, OF_MAX), url = `/api/crcr/live?${of.map((one) => `of=${encodeURIComponent(one.url)}`).join("&")}`;
  const tags = of.map((one) => one.tag).join(".");
  if (source && followed === url && known === tags) return;
  leave();
  if (!of.every((one) => one.tag) || typeof EventSource === "undefined" || performance.now() < resting) return;
  const giveUp = () => {
    leave();
    resting = performance.now() + AGAIN_MS;
    failed();
  };
  const mine = source = new EventSource(`${url}&etag=${tags}`);
  let opened = false; // an answer has begun
  followed = url;
  known = tags;
  mine.onopen = () => { opened = true; };
  mine.addEventListener("unchanged", () => {
    if (mine !== source) return;
    looked = true;
    unchanged();
  });
  mine.addEventListener("unseen", () => {
    if (mine !== source) return;
    looked = false;
    giveUp();
  });
  mine.addEventListener("changed", (event) => {
    if (mine !== source) return;
    looked = true;
    known = event.lastEventId;
    setTimeout(changed, Math.random() * JITTER_MS);
  });
  // Each answer ends with an error, too; one that never began is a failure.
  mine.onerror = () => {
    const failure = !opened || mine.readyState === EventSource.CLOSED;
    opened = false;
    if (failure && mine === source) giveUp();
  };
}

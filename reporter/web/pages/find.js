// What is typed into the box at the top, as an address of ours.

const SHA = /^[0-9a-f]{7,64}$/i;

// A commit that is the head of pull requests; else nightly runs are under it, or it begins a delivery's id.
async function commit(sha, get) {
  const found = (await get(`/api/crcr/prs?q=${sha}`).catch(() => null))?.prs ?? [];
  return found.length === 1 ? `/pr/${found[0].pr_number}` : found.length ? `/prs?q=${sha}` : /^\d{1,9}$/.test(sha) ? `/pr/${sha}` : `/delivery/${sha}`;
}

// A part of a backend's name, else of a pull request's title or author, else of a delivery's id.
async function named(text, get) {
  const repos = (await get("/api/crcr/summary").catch(() => null))?.repos.map((one) => one.repo) ?? [];
  const part = text.toLowerCase(), found = repos.filter((repo) => repo.toLowerCase().includes(part)), whole = found.find((repo) => repo.toLowerCase() === part);
  if (whole || found.length === 1) return `/repo/${whole || found[0]}`;
  if (found.length) return `/?q=${encodeURIComponent(text)}`;
  if (text.includes("/")) return `/repo/${text}`;
  const prs = (await get(`/api/crcr/prs?q=${encodeURIComponent(text)}`).catch(() => null))?.prs ?? [];
  return !prs.length && /^[A-Za-z0-9-]{8,}$/.test(text) ? `/delivery/${text}` : `/prs?q=${encodeURIComponent(text)}`;
}

// Of an address elsewhere: what GitHub has there.
function ofUrl(url, get) {
  const [, owner, name, kind, id] = url.pathname.split("/");
  return url.origin === location.origin ? url.pathname + url.search + url.hash
    : kind === "pull" && /^\d+$/.test(id) ? `/pr/${id}` : kind === "commit" && SHA.test(id) ? commit(id, get) : owner && name ? `/repo/${owner}/${name}` : "/";
}

export async function addressOf(typed, get) {
  const text = typed.trim(), check = /^crcr\/([^/\s]+\/[^/\s]+)/.exec(text), pull = /^(?:#|.*\/pull\/|[\w.-]+\/[\w.-]+#)?(\d{1,10})$/.exec(text);
  if (text === "" || /^\/(?!\/)/.test(text)) return text || "/";
  if (/^https?:\/\//i.test(text) && URL.canParse?.(text) !== false) return ofUrl(new URL(text), get);
  if (/^github\.com\//i.test(text)) return ofUrl(new URL(`https://${text}`), get);
  if (pull && (pull[1].length < 7 || pull[1] !== text)) return `/pr/${pull[1]}`;
  if (check) return `/repo/${check[1]}`;
  if (/^[0-9a-f]{8}-[0-9a-f-]*$/i.test(text)) return `/delivery/${text}`;
  return SHA.test(text) ? commit(text.toLowerCase(), get) : named(text, get);
}

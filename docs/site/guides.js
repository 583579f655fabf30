// The search of the guides, and the list of them. It fetches the text of all guides when somebody begins to search.
const input = document.getElementById('guide-search');
const results = document.getElementById('guide-results');
const found = document.getElementById('guide-found');
const groups = document.getElementById('guide-groups');
const maxResults = 20;

// On a wide screen the list is always there.
const wide = matchMedia('(min-width: 860px)');
const showGroups = () => {
  groups.open = wide.matches && input.value.trim() === '';
};
wide.addEventListener('change', showGroups);
showGroups();

let sections;

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  showGroups();
  if (words.length === 0) return show([], '');
  try {
    sections ??= fetch(input.dataset.index).then((answer) =>
      answer.ok ? answer.json() : Promise.reject(answer.status),
    );
    const all = await sections;
    const matches = all
      .map((section) => ({ section, rank: rankOf(section, words) }))
      .filter(({ rank }) => rank > 0)
      .sort((one, other) => other.rank - one.rank);
    const count = matches.length === 1 ? '1 section' : `${matches.length} sections`;
    show(
      matches.slice(0, maxResults),
      matches.length > maxResults ? `${count}, the first ${maxResults} of them` : count,
      words,
    );
  } catch {
    sections = undefined;
    show([], 'The guides cannot be searched now.');
  }
}

/** All words have to be there. Those in the title and the heading count more. */
function rankOf({ title, heading, text }, words) {
  let rank = 0;
  for (const word of words) {
    const [inTitle, inHeading, inText] = [title, heading, text].map((part) => part.toLowerCase().includes(word));
    if (!(inTitle || inHeading || inText)) return 0;
    rank += (inTitle ? 3 : 0) + (inHeading ? 5 : 0) + (inText ? 1 : 0);
  }
  return rank;
}

function show(matches, words, searched = []) {
  found.textContent = words;
  results.replaceChildren(...matches.map(({ section }) => itemOf(section, searched)));
}

function itemOf({ path, id, title, heading, text }, words) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = `${path}#${id}`;
  link.textContent = title === heading ? title : `${title}: ${heading}`;
  const part = document.createElement('p');
  const first = Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((place) => place >= 0));
  const from = Number.isFinite(first) ? Math.max(0, first - 40) : 0;
  part.textContent = `${from > 0 ? '…' : ''}${text.slice(from, from + 140)}${text.length > from + 140 ? '…' : ''}`;
  item.append(link, part);
  return item;
}

input.addEventListener('input', () => void search());
// The browser keeps what was typed when one comes back.
if (input.value !== '') void search();
